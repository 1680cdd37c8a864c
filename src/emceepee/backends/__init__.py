"""Connections outward: one link per transport, and the connection that owns it.

May import the MCP SDK (wire facts only), telemetry, state and below; knows nothing of sessions or callers, and speaks
upward only through `link.Listener`. Start at `connection.py`, then `link.py` for what every transport promises.
"""
