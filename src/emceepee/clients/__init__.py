"""The configuration files of MCP clients: where they are, what they say of servers, and how to change them.

Start reading at `catalogue.py`, which declares the clients. `reading.py` makes a server of ours of what a client wrote,
`writing.py` the entry of emceepee itself; `documents.py` edits the files without touching what is beside, and
`journal.py` keeps what they were.
"""
