"""Connections to Redis: a single server, Sentinel, or a cluster.

May import the modules of `store`. Read `opening.py` first. `wire.py` is the protocol, `link.py` one pipelined
connection, `commands.py` the interface that all topologies implement, and `faults.py` the wording of errors.
"""
