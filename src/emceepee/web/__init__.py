"""What both doors need of HTTP: a response, a body, a stream. Knows nothing of MCP nor of sessions."""
