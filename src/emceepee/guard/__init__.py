"""Authenticates HTTP requests (Host, Origin, tokens, logins), and decides which servers callers may add.

Knows HTTP headers and server configurations, nothing of tools or sessions. Start at `gate.py`.
"""
