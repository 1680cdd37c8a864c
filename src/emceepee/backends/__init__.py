"""Connections to MCP servers ("backends"): open them, keep them open, and send calls through them.

May import telemetry, state, and below; knows nothing about sessions or callers. It calls upward through two
interfaces: `link.Listener` reports messages from the server, `connection_events.Observer` reports state changes of the
connection. Read `connection.py` first, which owns the other parts of a connection, then `link.py`, which declares what
every transport provides. `supervisor.py` keeps a connection open.
"""
