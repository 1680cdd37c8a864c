"""Logins to backends: how a token for a server is found, asked for, refreshed and given back.

Pure but for `sender.py`, `proofs.py` and `login.py`. `flow.py` has the states of a login, and `flow_step.py` the one
function that decides what comes next; every HTTP exchange is a value (`exchange.py`). `login.py` carries a login out:
it sends, waits for the person, and gives the tokens (`tokens.py`) to whoever keeps them. The rules are those of the MCP
authorization specifications 2025-11-25 and 2026-07-28, which can be kept at the same time.
"""
