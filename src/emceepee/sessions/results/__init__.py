"""Results that a session stores: those of finished tasks, and large ones behind a handle.

May import the modules of `sessions`. `result_budget.py` is the budget of stored results, `stored_results.py` has the
large results, and `long_work.py` runs long conversions in a thread.
"""
