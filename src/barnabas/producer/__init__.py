"""The producer: what is sent where and when, and what came of it.

    send ──▶ Preparation: interceptors, serializers, partitioner ──▶ Accumulator ──▶ RecordFuture
              └──▶ Appending: waits if the accumulator rejects        │ collect
                                                                         ▼
    ProducerCore, on its loop ───────▶ Sender: ready, drain, settle, expire
     │  │                                └──▶ PartitionQueue: ProducerBatch, Sequences
     │  └──▶ ProduceRequests: batches to leaders, and their responses
     └─────▶ TransactionManager ──▶ Transaction decides, Coordinator talks

`Accumulator`, `Sender` and `Transaction` decide, with time passed in. Nothing here has a thread:
the plain clients bring theirs, a simulation brings a loop of its own.
"""
