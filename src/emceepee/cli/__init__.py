"""The commands. Start at `main.py`."""
