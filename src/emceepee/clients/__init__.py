"""The configuration files of other MCP clients: find them, read their servers, and change them.

May import config, telemetry, and below. Read `known_clients.py` first: it declares the clients. `entry_reader.py`
converts a client's servers to emceepee's format, `entry_writer.py` writes the entry for emceepee, `client_file.py`
edits a file without touching its other content, and `change_journal.py` stores the previous content for `undo`.
"""
