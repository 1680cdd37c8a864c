"""One replica asks another: the internal HTTP hop to whoever holds a session.

A request for a session that another process holds is passed on to that process's hop listener, signed with a secret
that only those who share the store know, and the response is passed back as it comes. May import server, console and
below. Start at `forwarder.py`, the side that asks; `listener.py` is the side that answers, `signature.py` what both
agree on.
"""
