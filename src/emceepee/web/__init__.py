"""Small ASGI helpers that the MCP endpoint and the console share.

May import clock, lifecycle, and below; knows neither MCP nor sessions. Read `asgi.py` first: responses and bounded
request bodies. `streams.py` writes event streams, `callback.py` renders the page after a login.
"""
