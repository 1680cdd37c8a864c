"""OpenTelemetry: requests as traces and metrics, under the names of the conventions for MCP.

Loaded only where it is asked for, because it needs packages that most do without. Start at `export.py`; a request of a
caller is followed in `incoming.py`, one to a server in `outgoing.py`.
"""
