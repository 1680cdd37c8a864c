"""Durable state: sessions as sets of small records, added servers, logins, and secrets.

May import state and below; knows nothing about the meaning of the records. Read `store.py` first: the interface that
every engine implements. The engines are `memory_store.py`, `sqlite/`, and `redis/`. `secret_box.py` encrypts secrets.
"""
