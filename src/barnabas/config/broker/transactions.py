"""Transactions and idempotent producers."""

from __future__ import annotations

from barnabas.config.option import Section, option


class TransactionsOptions(Section):
    """Transactions and idempotent producers."""

    transaction_max_timeout_ms: int = option(
        "transaction.max.timeout.ms",
        "int",
        default=900_000,
        at_least=1,
        doc="Maximum transaction timeout a producer may request.",
    )
    transactional_id_expiration_ms: int = option(
        "transactional.id.expiration.ms",
        "int",
        default=604_800_000,
        at_least=1,
        doc="How long an idle transactional id is kept.",
    )
    transaction_state_log_num_partitions: int = option(
        "transaction.state.log.num.partitions",
        "int",
        default=50,
        at_least=1,
        doc="Number of partitions of the transaction state topic.",
    )
    transaction_state_log_replication_factor: int = option(
        "transaction.state.log.replication.factor",
        "short",
        default=3,
        at_least=1,
        doc="Replication factor of the transaction state topic.",
    )
    transaction_state_log_min_isr: int = option(
        "transaction.state.log.min.isr",
        "int",
        default=2,
        at_least=1,
        doc="Minimum in-sync replicas of the transaction state topic.",
    )
    transaction_state_log_segment_bytes: int = option(
        "transaction.state.log.segment.bytes",
        "int",
        default=104_857_600,
        at_least=1,
        doc="Segment size of the transaction state topic.",
    )
    transaction_state_log_load_buffer_size: int = option(
        "transaction.state.log.load.buffer.size",
        "int",
        default=5_242_880,
        at_least=1,
        doc="Read size when loading transactions.",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = option(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "int",
        default=10_000,
        at_least=1,
        doc="How often to abort transactions that have timed out.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = option(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "int",
        default=3_600_000,
        at_least=1,
        doc="How often to remove expired transactional ids.",
    )
    transaction_partition_verification_enable: bool = option(
        "transaction.partition.verification.enable",
        "boolean",
        default=True,
        dynamic="cluster",
        doc="Whether an append verifies that its partition was added to the transaction.",
    )
    producer_id_expiration_ms: int = option(
        "producer.id.expiration.ms",
        "int",
        default=86_400_000,
        at_least=1,
        dynamic="cluster",
        doc="How long the state of an idle producer is kept.",
    )
