"""What passes between emceepee and one server, written down line by line, so that `emceepee replay` can say it again.

`entries.py` has the form of the file, `recorder.py` writes it, `recorded_link.py` stands around a recorded link.
`on_demand.py` is how a person begins one and ends it. Where nothing is recorded, none of it is on the way. Who
reads the file is in `emceepee.replay`.
"""
