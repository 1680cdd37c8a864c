"""What emceepee remembers and does for one caller: connections, calls, buffers, and the servers they share.

Knows backends, never transports of callers nor protocol eras. Start at `session.py`; `registry.py` holds the server
configurations that the sessions of one principal share.
"""
