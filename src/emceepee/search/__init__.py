"""Full-text search for tools, resources, prompts, and servers: an index in memory.

May import state and below; knows nothing about sessions or connections. Texts of servers are data, never syntax. Read
`index.py` first; `words.py` splits text into words, and `query.py` interprets a query.
"""
