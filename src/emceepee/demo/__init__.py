"""A small MCP server to try emceepee with: `python -m emceepee.demo` serves stdio in both protocol eras.

It uses every part of the protocol that a proxy must relay: progress, questions, sampling, notifications, and logs. May
import miniserver; no other room imports it. Read `server.py` first; `tools.py` has one function per tool.
"""
