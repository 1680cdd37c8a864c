"""A process on standard input that is only a pipe to the daemon of the same user. Begin at `pipe.py`.

Nothing here loads the protocol stack: whoever attaches answers as soon as the daemon does.
"""
