"""The producer's machines: what to send where and when, and what became of it.

    send ──▶ interceptors, serializers, partitioner ──▶ kernels.Accumulator
                                                              │ collect
    core (asyncio) ──▶ Sender: ready, drain, expire ◀─────────┘
         │                 └──▶ PartitionQueue, Sequences
         └──▶ TransactionState, coordinator

Only `core.py` and `coordinator.py` touch asyncio, and nothing here has a thread: the plain clients
bring theirs, a simulation brings a loop of its own.
"""
