"""The configuration files of other MCP clients: find them, read their servers, and change them.

May import config, telemetry, and below. Read `catalogue.py` first: it declares the clients. `reading.py` converts a
client's servers to emceepee's format, `writing.py` writes the entry for emceepee, `documents.py` edits a file without
touching its other content, and `journal.py` stores the previous content for `undo`.
"""
