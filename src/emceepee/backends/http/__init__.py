"""The transports over HTTP: Streamable HTTP and the older HTTP+SSE transport.

May import the modules of `backends` and `http1`. Read `http_link.py` first: one link over Streamable HTTP.
`http_wire.py` sends one request and reads its response or event stream, `sse_link.py` is the older transport.
"""
