"""The "Set up" commands: import, install, servers, config, auth, doctor, and undo.

May import every room below `cli`. Each command starts in the module that `cli/main.py` declares for it. `diagnosis.py`
formulates the findings of `doctor`, `auth_work.py` performs the steps of `auth`, and `terminal_login.py` asks the
person.
"""
