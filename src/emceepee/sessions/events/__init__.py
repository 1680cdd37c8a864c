"""Events, notifications, and log lines of a session, and the signal that wakes waiting callers.

May import the modules of `sessions` that hold records. Read `activity.py` first: the ordered log of events.
"""
