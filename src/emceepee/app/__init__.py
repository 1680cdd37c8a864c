"""Composition: builds the parts of emceepee, connects them, and closes them in reverse order.

May import every other room except `cli` and `daemon`. Read `session_parts.py` first: it builds the parts that sessions
share. `http_app.py` and `stdio_app.py` add a front end to them, and `reloader.py` applies changes of the
configuration file while emceepee runs.
"""
