"""What outlives the process: sessions as sets of small records, servers that were added, logins, secrets.

`store.py` says in which words the rest of emceepee speaks of it. Each engine (memory, SQLite, Redis) knows those words
and nothing of what the records mean: `memory.py`, `sqlite.py` with what it is made of, and `redis`. `inspection.py` is
for operators.
"""
