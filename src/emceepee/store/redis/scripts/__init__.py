"""The Lua scripts that Redis runs atomically.

Imports nothing but `lua_script.py`. Read `session_scripts.py` first: commits, leases, and takeovers of sessions.
"""
