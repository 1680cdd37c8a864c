"""Records the messages between emceepee and one server to a file, so that `emceepee replay` can serve them again.

May import the modules of `backends`. Read `recorded_link.py` first, which wraps a recorded link. `entries.py` declares
the file format, `recorder.py` writes it, and `on_demand_recording.py` starts and stops a recording from the console.
The reader of the file is `emceepee.replay`.
"""
