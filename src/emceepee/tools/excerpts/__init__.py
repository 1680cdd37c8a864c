"""Parts of large results: their outline, their bytes, matching lines, and JSONPath queries.

May import the modules of `tools`. Read `large_results.py` first: it replaces a large result by its head, outline, and
handle. `outline.py` describes its shape, `grep.py` and `json_path.py` search it.
"""
