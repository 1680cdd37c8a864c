"""The local daemon that several stdio clients of one user share, and the pipe that connects a client to it.

`daemon_app.py`, `attached_callers.py`, and `followed_identity.py` are the daemon and may import app and below. All
other modules run in the client's process; they import only wire and below, so that a client starts fast. Read `pipe.py`
first, then `daemon_socket.py` for the daemon's side of the socket.
"""
