"""MCP over HTTP. A request comes by `connection` to `endpoint`; `handshake_connection` or `stateless` answer it."""
