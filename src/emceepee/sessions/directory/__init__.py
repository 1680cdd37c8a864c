"""All sessions of a process: open, find, load, save, and close them.

May import the modules of `sessions`. Read `directory.py` first. `open_sessions.py` is the table of sessions in memory,
`session_storage.py` takes sessions from the store and releases them, `saver.py` writes changes, and `placement.py`
knows which replica holds a session.
"""
