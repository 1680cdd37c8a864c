"""The formats on the wire: JSON, message framing, JSON-RPC, and the constants of the MCP specification.

Imports nothing from other rooms. Read `codec.py` first: it decodes and encodes JSON within bounds. `line_splitter.py`
splits a byte stream into lines, `json_rpc.py` builds messages, and `protocol.py` declares versions, methods, and error
codes.
"""
