"""OpenTelemetry: requests as traces and metrics, with the names of its conventions for MCP.

May import the modules of `telemetry`. Imported only with `--otel`, because it needs packages of an extra. Read
`otlp_export.py` first; `request_tracer.py` traces requests of callers, `link_tracer.py` requests to servers.
"""
