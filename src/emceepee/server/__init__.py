"""The front door for MCP callers: transports and protocol eras end here.

May import the MCP SDK, tools and below. `dispatch.py` is the way of every tool call; `kernel.py` the SDK server for all
other methods; `stdio_endpoint.py` and `conversation.py` the stdio door.
"""
