"""What outlives the process: sessions as sets of small records, servers that were added, logins.

`store.py` says in which words the rest of emceepee speaks of it. Each engine (memory, SQLite) knows those words and
nothing of what the records mean: `memory.py`, and `sqlite.py` with what it is made of. `inspection.py` is for
operators.
"""
