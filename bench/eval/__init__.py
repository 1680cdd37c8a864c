"""How well `codemode_search` finds tools, on sets of questions that others wrote. The sets are not part of emceepee.

`make eval DATA=folder` runs it. Start at `sets.py`, which says which files the folder has.
"""
