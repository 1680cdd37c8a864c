"""Finding tools, resources, prompts and servers by words: an index in memory, and what a hit looks like.

Knows nothing of sessions and connections: it is given entries as the backends sent them. Their texts are data, never
syntax. Start at `index.py`; what is a word is in `words.py`, what a query means in `query.py`.
"""
