"""emceepee's own tools: one module per family, each tool declared once.

May import codemode, sessions, and below; knows no transport and no protocol version. A tool is a parameter model, a
docstring, and one verb on the session. Read `declaration/` first, then `catalogue.py`, which lists them all.
"""
