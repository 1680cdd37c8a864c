"""The "Keep" commands: state, version, and completion.

May import every room below `cli`. `state_command.py` is `emceepee state`, `version_command.py` is `version`,
`completion_command.py` is `completion`.
"""
