"""How a tool is declared, and what is derived from the declaration: schemas, argument checks, aliases, and hints.

May import sessions and below, but no tool. Read `declaration.py` first: the decorator and the class of a tool.
"""
