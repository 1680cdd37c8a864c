"""A recording as an MCP server: `emceepee replay FILE` answers as the recorded server did, in both eras.

`reading.py` makes a `Recording` of a file, which nobody vouches for; `script.py` finds the answer to a request;
`conversation.py` is the server, and knows no transport: `stdio.py` and `http.py` do. Nothing here reaches a server,
runs a program or opens a file but the one that was named.
"""
