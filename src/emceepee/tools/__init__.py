"""The user interface for models: one module per family, each tool declared once.

A tool is a parameter model, a docstring and one verb on the session. Knows nothing of transports or protocol versions.
Start at `declaration.py`, then `catalogue.py` for the whole set.
"""
