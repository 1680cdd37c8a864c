"""Stored messages of event streams, so that a caller can resume a dropped stream with `Last-Event-ID`.

May import the modules of `server.http`. Read `replay.py` first: the streams of one session. `message_log.py` stores
the messages, `message_eviction.py` decides which ones to drop when the log is full.
"""
