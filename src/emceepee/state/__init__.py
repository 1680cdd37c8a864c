"""Pure records and rules: what a connection, a task, a question, a timer or a queue of events may do.

Nothing here reads a clock, awaits or touches a wire type: time comes in as an argument, a decision goes out as a value.
Start at `machine.py`: each transition table guards the code and draws its own diagram.
"""
