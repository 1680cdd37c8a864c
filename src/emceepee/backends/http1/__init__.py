"""HTTP/1.1 to backends, with as little as possible between a call and its socket.

Knows nothing of MCP nor of links; may import clock, lifecycle and below. Start at `client.py`, what one link has of it;
`pool.py` keeps the connections that links share, `connection.py` is one of them, `response.py` what comes back. How one
is opened, through a proxy or with a certificate, is in `connector.py`.
"""
