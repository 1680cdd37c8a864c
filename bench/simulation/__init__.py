"""A thousand replicas and a million sessions on a fake clock, by the rules that real ones go by.

    World ──▶ balancer ──▶ SimulatedReplica ─┬─ RequestRouter, Placement, DurableStorage, DueWatch   the real ones
      │                        ▲ SimulatedHop│
      └ Scheduler: a clock     └─────────────┴─ LeasedStore: MemoryStore with leases that lapse (LeaseWatch)

A session here is a row of the store and a lease in the replica that has it; nothing is called, only awaited.
"""
