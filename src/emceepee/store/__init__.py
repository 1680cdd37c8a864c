"""Durability, in domain words: what must outlive a process is committed here with a revision.

Only the composition root and `sessions/server_repository.py` look in. `protocols.py` says what every engine promises;
`memory.py` is a real engine, run by the same contract suite as any other.
"""
