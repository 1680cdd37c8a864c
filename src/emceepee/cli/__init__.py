"""The command line. Each command has a module, in the room of its group in `emceepee --help`.

May import every other room. Read `main.py` first: it declares the commands and their groups, and imports a command's
module only when that command runs. `terminal.py` writes to the terminal, and `command_arguments.py` declares shared
flags.
"""
