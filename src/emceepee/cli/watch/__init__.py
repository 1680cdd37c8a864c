"""The "Watch" commands: logs, top, and replay.

May import every room below `cli`. `log_lines.py` is `logs`, `live_view.py` is `top`, `replay_command.py` is `replay`.
`console_feed.py` reads the console's live feed of a running `emceepee serve`.
"""
