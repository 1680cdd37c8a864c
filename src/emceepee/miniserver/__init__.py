"""A small MCP server of both eras, for the demo server and for replays.

May import server and below. It implements handshake, discovery, cancellation, elicitation, and subscriptions; a
subclass of `Conversation` adds the tools. Read `server_conversation.py` first.
"""
