"""Additions to a result in a reply: notices of events, open questions, and promotions to tasks.

May import the modules of `tools`. Read `replies.py` first. `notices.py` selects events and questions, `promotion.py`
describes a call that became a task, and `heartbeat.py` reports progress while a caller waits.
"""
