"""An HTTP/1.1 client with little overhead per request.

Knows nothing about MCP or links; may import clock, lifecycle, and below. Read `http_client.py` first: the client of one
link. `pool.py` shares connections among links, `client_connection.py` is one connection, `response.py` reads a
response. `connector.py` opens connections: directly, through a proxy, with or without TLS.
"""
