"""State in Redis, which processes on several machines share. Loaded only by those who keep it there.

    RedisStore ─┬─▶ Sessions ──┬─▶ Commands: RedisLink ──▶ Wire, one connection   in one node
                ├─▶ Shared  ───┤             ClusterCommands ──▶ `redis`           in a cluster
                └─▶ SlotLease ─┘

Whatever changes more than one thing is one script, so it happens whole or not at all: `session_scripts.py`.
All that belongs to one principal's sessions lies in one partition: sessions, the keys that lead to them, and indexes.
In a cluster a partition is on one node, so that one script reaches all of it.
"""
