"""The declaration of a tool, and the parts derived from it: schemas, argument checks, aliases, and hints.

May import sessions and below, but no tool. Read `declaration.py` first: the decorator and the class of a tool.
"""
