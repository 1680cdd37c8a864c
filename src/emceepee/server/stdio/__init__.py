"""MCP over standard input and output for one caller."""
