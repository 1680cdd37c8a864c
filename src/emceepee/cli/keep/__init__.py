"""The "Keep" commands: state, version, and completion.

May import every room below `cli`. `state_command.py` is `emceepee state`, `versions.py` is `version`, `shells.py` is
`completion`.
"""
