"""MCP over HTTP: the endpoint, and one module per protocol era.

May import tools and below. Read `http_endpoint.py` first: it routes each path. A request at /mcp goes from
`server_connection.py` through it to `mcp_endpoint.py`. There `request_router.py` decides, and then
`handshake_connection.py` (up to 2025-11-25) or `stateless.py` (2026-07-28) answers. `http_shutdown.py` ends requests in
stages. `replay/` stores the messages of streams that a caller can resume.
"""
