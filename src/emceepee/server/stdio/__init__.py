"""MCP over standard input and output, for one caller.

May import tools and below. Read `stdio_endpoint.py` first; `stdio_conversation.py` reads and answers messages, and
`pipes.py` does the I/O.
"""
