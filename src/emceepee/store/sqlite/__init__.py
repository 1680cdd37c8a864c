"""The SQLite engine: one file, and one thread that owns it.

May import the modules of `store`. Read `sqlite_store.py` first. `schema.py` declares the tables, `session_table.py` and
its neighbors read and write them, `sqlite_committer.py` writes a batch in one transaction, and `work_queue.py` is the
thread's queue. `inspection.py` and `state_export.py` are for operators.
"""
