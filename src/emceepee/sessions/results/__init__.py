"""Results that a session stores: those of finished tasks, and large ones behind a handle.

May import the modules of `sessions`. `result_budget.py` is the budget of stored results, `kept_results.py` stores large
results, and `long_work.py` runs conversions that take long in a thread.
"""
