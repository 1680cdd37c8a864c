"""What the MCP endpoint and the console need of HTTP: a response, a body, a stream. Knows neither MCP nor sessions."""
