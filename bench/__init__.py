"""The benchmark: emceepee, its peers, a bare relay and a direct call, on the same work in one run.

`contestants.py` says who takes part and how each is started, `load/` makes callers, `backend/` is what they all call,
`measure/` has one module for each thing that is measured. `targets.py` says what must hold, `report.py` and `plot.py`
show it. Start reading in `__main__.py`.

`simulate.py` is a program of its own: many replicas on a fake clock, `simulation/`.
"""
