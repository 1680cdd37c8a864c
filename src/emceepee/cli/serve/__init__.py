"""The commands that serve callers: bare `emceepee`, `emceepee serve`, and `emceepee daemon`.

May import every room below `cli`. Read `serve_command.py` first. `worker_processes.py` runs and restarts worker
processes, and `attach_command.py` connects a process on standard input to the daemon.
"""
