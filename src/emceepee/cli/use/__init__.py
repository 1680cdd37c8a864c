"""The "Use servers" commands: tools, call, read, prompt, and search.

May import every room below `cli`. Read `call_command.py` first (`call`); `query_command.py` has the other commands.
`command_session.py` opens the session that they share, and `tool_caller.py` calls emceepee's tools in it.
"""
