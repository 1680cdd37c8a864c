"""Connections outward: one link per transport, and the connection that owns it.

May import telemetry, state and below; knows nothing of sessions or callers. It calls
upward in two ways: `link.Listener` gets what a backend sends, `connection_events.Observer` what becomes of a
connection. Start at `connection.py`, which owns the other parts of a connection, then `link.py` for what every
transport promises; `supervisor.py` keeps a connection open.
"""
