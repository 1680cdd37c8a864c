"""Forwards a request to the replica that holds its session, over an internal HTTP connection.

May import server, console, and below. Requests are signed with a secret that only replicas with access to the store
know. Read `forwarder.py` first, the side that forwards; `listener.py` is the side that answers, and `signature.py` is
the protocol of both.
"""
