"""Backends that are reached over HTTP: Streamable HTTP and the older SSE transport."""
