"""OpenTelemetry: requests as traces and metrics, with the names of its conventions for MCP.

May import the modules of `telemetry`. Imported only with `--otel`, because it needs packages of an extra. Read
`export.py` first; `incoming.py` traces requests of callers, `outgoing.py` requests to servers.
"""
