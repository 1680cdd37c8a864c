"""MCP over HTTP: the endpoint, and one module per protocol era.

May import tools and below. A request goes from `server_connection.py` to `http_endpoint.py`; then
`handshake_connection.py` (up to 2025-11-25) or `stateless.py` (2026-07-28) answers it. `replay/` stores the messages of
streams that a caller can resume.
"""
