"""Logins of a principal to backends: run them once for all sessions, and store their tokens.

May import the modules of `sessions`. Read `server_logins.py` first. `running_login.py` is one login in progress,
`authorizer.py` is a session's side of it, and `token_repository.py` stores and refreshes tokens.
"""
