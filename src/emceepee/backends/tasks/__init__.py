"""Calls that a backend runs as its own tasks: start them, follow them, and resume them after a restart.

May import the modules of `backends`. Read `backend_tasks.py` first: the tasks of one connection. `task_messages.py`
reads task messages of both protocol eras, `follower_step.py` decides the next step, and `follower.py` performs it.
"""
