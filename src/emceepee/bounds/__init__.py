"""Bounds for untrusted data, applied while it is converted or read.

Imports nothing from emceepee. `budget.py` counts bytes, values, and time during a conversion. `files.py` reads a
regular file up to a size limit.
"""
