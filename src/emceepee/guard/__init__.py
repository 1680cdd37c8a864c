"""Authentication of HTTP requests (Host, Origin, tokens, logins), and the policy for servers that callers add.

May import sessions and below. Knows HTTP headers and server configurations, but not tools. Read `access_control.py`
first: it checks every request. `policy.py` decides which servers a caller may add, `oauth.py` validates access tokens.
"""
