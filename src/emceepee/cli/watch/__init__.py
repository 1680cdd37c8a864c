"""The "Watch" commands: logs, top, and replay.

May import every room below `cli`. `logs_command.py` is `logs`, `top_command.py` is `top`, `replay_command.py` is
`replay`. `console_feed.py` reads the console's live feed of a running `emceepee serve`.
"""
