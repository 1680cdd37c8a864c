"""Who may come in, and what they may do: Host, Origin, tokens, logins, and the policy for adding servers.

Knows HTTP headers and server configurations, nothing of tools or sessions. Start at `gate.py`.
"""
