"""OAuth logins to backends: discover the authorization server, ask the person, and get, refresh, and revoke tokens.

May import `http1` and below. Read `flow.py` first: the states of a login. `flow_step.py` is the pure function that
decides the next step: `discovery.py` finds the authorization server and the client, and `token_request.py` gets the
token. Every HTTP exchange is a value (`oauth_messages.py`), and `login.py` performs the steps. Only `oauth_sender.py`,
`proofs.py`, and `login.py` do I/O. The rules satisfy the MCP authorization specifications of 2025-11-25 and 2026-07-28.
"""
