"""All sessions of a process: open, find, load, save, and close them.

May import the modules of `sessions`. Read `directory.py` first. `open_sessions.py` is the table of sessions in memory,
`stored_sessions.py` loads sessions from the store, `saver.py` writes changes, and `placement.py` knows which replica
holds a session.
"""
