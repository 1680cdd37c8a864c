"""The front end for MCP callers. Transports and protocol eras end here.

May import tools and below. Read `requests.py` first: the running requests of every transport, and how they end.
`dispatch.py` handles every tool call, `eras.py` and `protocol_methods.py` handle all other methods. `stdio/` and
`http/` are the transports.
"""
