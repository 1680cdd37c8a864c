"""The commands that serve callers: bare `emceepee`, `emceepee serve`, and `emceepee daemon`.

May import every room below `cli`. Read `serving.py` first. `workers.py` runs and restarts worker processes, and
`attaching.py` connects a process on standard input to the daemon.
"""
