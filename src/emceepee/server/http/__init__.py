"""MCP over HTTP for callers: Streamable HTTP of the handshake era, and stateless 2026-07-28 requests."""
