"""The state of a connection to a backend: its states, and the pure function that decides every transition.

May import the modules of `state`. Read `connection_step.py` first: it maps a state and an event to the next state and
the effects that `backends/supervisor.py` performs. `retry.py` decides when to try again.
"""
