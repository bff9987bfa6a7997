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
        doc="Longest transaction that a producer may ask for.",
    )
    transactional_id_expiration_ms: int = option(
        "transactional.id.expiration.ms",
        "int",
        default=604_800_000,
        at_least=1,
        doc="How long an idle transactional id is remembered.",
    )
    transaction_state_log_num_partitions: int = option(
        "transaction.state.log.num.partitions",
        "int",
        default=50,
        at_least=1,
        doc="Partitions of the topic that keeps transactions.",
    )
    transaction_state_log_replication_factor: int = option(
        "transaction.state.log.replication.factor",
        "short",
        default=3,
        at_least=1,
        doc="Replicas of the topic that keeps transactions.",
    )
    transaction_state_log_min_isr: int = option(
        "transaction.state.log.min.isr",
        "int",
        default=2,
        at_least=1,
        doc="In-sync replicas that a change of a transaction needs.",
    )
    transaction_state_log_segment_bytes: int = option(
        "transaction.state.log.segment.bytes",
        "int",
        default=104_857_600,
        at_least=1,
        doc="Segment size of the topic that keeps transactions.",
    )
    transaction_state_log_load_buffer_size: int = option(
        "transaction.state.log.load.buffer.size",
        "int",
        default=5_242_880,
        at_least=1,
        doc="Bytes read at once while loading transactions.",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = option(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "int",
        default=10_000,
        at_least=1,
        doc="How often overdue transactions are looked for.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = option(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "int",
        default=3_600_000,
        at_least=1,
        doc="How often expired transactional ids are looked for.",
    )
    transaction_partition_verification_enable: bool = option(
        "transaction.partition.verification.enable",
        "boolean",
        default=True,
        dynamic="cluster",
        doc="Whether a partition is checked to be part of a transaction before its append.",
    )
    producer_id_expiration_ms: int = option(
        "producer.id.expiration.ms",
        "int",
        default=86_400_000,
        at_least=1,
        dynamic="cluster",
        doc="How long the state of an idle idempotent producer is kept.",
    )
