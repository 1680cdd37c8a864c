"""A small MCP server of both eras, for what is no proxy: the demonstration server, and the replay of a recording.

It knows what every server must (handshake, discovery, cancelling, asking, listening) and leaves the rest to whoever
inherits from `Conversation`. It stands above `server`, whose pipes it uses. Start at `conversation.py`.
"""
