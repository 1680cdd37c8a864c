"""Code mode: scripts of models, run in a sandbox that can do nothing but call.

Begin with `script.py`, which drives one script from its first line to its result: when it waits, is parked, goes on.
`execution.py` runs it in the sandbox, and `workers.py` has the processes for that. What it asks for goes to
`call_queue.py`, and is called in `calls_at_work.py`. `bindings.py` says what a script can call, `server_modules.py`
what `from servers import …` gives it. Scripts are calls of a session: promotion, time to live and cancelling are as for
any.
"""
