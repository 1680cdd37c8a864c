"""Code mode: scripts of models, run in a sandbox that can do nothing but call.

Begin with `script.py`, which drives one script from its first line to its result: what it asks, when it is parked, and
how it goes on. `bindings.py` says what a script can call, `server_modules.py` what `from servers import …` gives it,
`workers.py` where it runs. Scripts are calls of a session: promotion, time to live and cancelling are as for any call.
"""
