"""The Redis engine, for state that processes on several machines share. Imported only where it is configured.

    RedisStore ─┬─▶ Sessions ──┬─▶ Commands: RedisLink ──▶ one RedisConnection   on one node
                ├─▶ Shared  ───┤             ClusterCommands ──▶ `redis`         in a cluster
                └─▶ SlotLease ─┘

May import the modules of `store`. Read `redis_store.py` first. Every change of more than one key is one Lua script
(`scripts/`), so it is atomic. All keys of a principal share a hash tag, so one script reaches all of them in a
cluster.
"""
