"""One caller's session: its connections, calls, tasks, questions, timers, events, and buffers.

May import backends, store, and below; knows no transport and no protocol era. Read `session.py` first, then `calls.py`
for the path of a call. `directory/` opens, finds, and stores sessions; `servers/` has the server configurations that
the sessions of a principal share; `logins/`, `questions/`, and `results/` hold what their names say.
"""
