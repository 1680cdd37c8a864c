"""A small MCP server to try emceepee with: `python -m emceepee.demo` speaks stdio in both protocol eras.

It uses every part of the protocol that a proxy has to carry: progress, questions, sampling, notifications, logs. The
rest of emceepee never imports it. Start at `server.py`; `tools.py` has one function per tool.
"""
