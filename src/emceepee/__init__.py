"""emceepee: an MCP proxy that gives any tool-capable client the whole protocol through a fixed set of tools.

Start reading at `app.py` (what is built, and in which order it closes) and `server/dispatch.py` (the way of a call).
"""

from importlib.metadata import version

__version__ = version("emceepee")
