"""The server configurations of a principal: the operator's and the callers' own.

May import the modules of `sessions`. Read `registry.py` first. `server_repository.py` stores added servers,
`server_trial.py` has the servers that are tried before they are added, and `server_changes.py` compares two
configurations.
"""
