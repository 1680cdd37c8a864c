"""The server for MCP callers: transports and protocol eras end here.

May import tools and below. `requests.py` is the core: the requests of every transport that run, and how
they end. Below it `dispatch.py` is the way of every tool call, and `eras.py` the way to
`kernel.py` for all other methods. `stdio/` and `http/` are the transports.
"""
