"""Calls that a backend runs as tasks of its own: asked for, followed to their end, and taken up again after a restart.

`wire` reads what backends of both eras say of a task, `following` decides what to do about it, `follower` does that.
`backend_tasks` has those of one connection.
"""
