"""Pure records and rules: what a connection, a call, a task, a question, a timer, or a queue of events may do.

May import ids, errors, and wire types only. Nothing here reads a clock, awaits, or does I/O: time is an argument and a
decision is a return value. Read `machine.py` first: each transition table guards the code and renders its own diagram.
"""
