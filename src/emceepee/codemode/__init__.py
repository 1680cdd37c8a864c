"""Code mode: runs the scripts of models in a sandbox that can only compute and call tools.

May import sessions and below. Read `script.py` first, which drives one script from start to result, including parking
and resuming. `execution.py` runs it in the sandbox, `script_workers.py` manages the sandbox processes, and
`script_calls.py` makes its calls. `bindings.py` declares the functions that a script can call, and `server_modules.py`
builds the modules of `from servers import …`.
"""
