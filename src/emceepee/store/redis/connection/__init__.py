"""Connections to Redis: a single server, Sentinel, or a cluster.

May import the modules of `store`. Read `redis_access.py` first. `redis_connection.py` is the protocol, `redis_link.py`
one pipelined connection, `commands.py` the interface that all topologies implement, and `redis_faults.py` the wording
of errors.
"""
