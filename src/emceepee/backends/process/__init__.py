"""The stdio transport: child processes, their pipes, and their end.

May import the modules of `backends`. Read `stdio_link.py` first: one link to a child process. `child.py` starts and
stops the process, and `guardian.py` is a helper process that ends the whole process tree if emceepee is killed.
"""
