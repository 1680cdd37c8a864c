"""What emceepee remembers and does for one caller: connections, calls, tasks, questions, timers, events, buffers.

Sees a backend only as a `Connection` that returns final results, and as what its `Listener` reports; knows no transport
and no protocol era of either side. Start at `session.py`, then `calls.py` for the way of a call; `registry.py` holds
the server configurations that the sessions of one principal share.
"""
