"""Every option of a topic, and how it falls back to the broker's.

    options = TopicOptions.resolve(broker, {"segment.bytes": "1048576"})
    options.segment_bytes        # the override
    options.retention_ms         # the broker's log.retention.ms, or minutes, or hours

All topic options can be changed at run time: a change resolves a new object. `validate_overrides`
is the strict check for what users send; `resolve` passes over names that it does not know, so that
a topic made by a newer release still loads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from barnabas.config.aliases import aliases, to_ms
from barnabas.config.broker import BrokerOptions
from barnabas.config.option import Section, attribute_name, option, suggest
from barnabas.config.reasons import TIERED
from barnabas.model.errors import ConfigError


class TopicOptions(Section):
    """All options of a topic."""

    barnabas_unpacked_batch_max_bytes: int = option(
        "barnabas.unpacked.batch.max.bytes",
        "long",
        default=268_435_456,
        at_least=1,
        synonym="barnabas.unpacked.batch.max.bytes",
        dynamic="cluster",
        doc="The most bytes to which a compressed batch may unpack to be accepted.",
    )
    barnabas_unpacked_record_max_bytes: int = option(
        "barnabas.unpacked.record.max.bytes",
        "int",
        default=16_777_216,
        at_least=1,
        synonym="barnabas.unpacked.record.max.bytes",
        dynamic="cluster",
        doc="The most memory that unpacking takes: the largest record of a compressed batch, "
        "unless max.message.bytes or four times the size of the batch is more.",
    )
    cleanup_policy: tuple[str, ...] = option(
        "cleanup.policy",
        "list",
        default=("delete",),
        choices=("compact", "delete"),
        synonym="log.cleanup.policy",
        dynamic="cluster",
        doc="What happens to old records: delete, compact, or both.",
    )
    compression_type: str = option(
        "compression.type",
        "string",
        default="producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        synonym="compression.type",
        dynamic="cluster",
        doc="Codec in which batches are stored; producer keeps the one they came in.",
    )
    compression_gzip_level: int = option(
        "compression.gzip.level",
        "int",
        default=-1,
        at_least=1,
        at_most=9,
        besides=(-1,),
        synonym="compression.gzip.level",
        dynamic="cluster",
        doc="Level when the broker compresses with gzip; -1 is the library's own.",
    )
    compression_lz4_level: int = option(
        "compression.lz4.level",
        "int",
        default=9,
        at_least=1,
        at_most=17,
        synonym="compression.lz4.level",
        dynamic="cluster",
        doc="Level when the broker compresses with lz4.",
    )
    compression_zstd_level: int = option(
        "compression.zstd.level",
        "int",
        default=3,
        at_least=-131072,
        at_most=22,
        synonym="compression.zstd.level",
        dynamic="cluster",
        doc="Level when the broker compresses with zstd.",
    )
    delete_retention_ms: int = option(
        "delete.retention.ms",
        "long",
        default=86_400_000,
        at_least=0,
        synonym="log.cleaner.delete.retention.ms",
        dynamic="cluster",
        doc="How long the marker of a deleted key stays.",
    )
    file_delete_delay_ms: int = option(
        "file.delete.delay.ms",
        "long",
        default=60_000,
        at_least=0,
        synonym="log.segment.delete.delay.ms",
        dynamic="cluster",
        doc="Wait between taking a file out of use and removing it.",
    )
    flush_messages: int = option(
        "flush.messages",
        "long",
        default=2**63 - 1,
        at_least=1,
        synonym="log.flush.interval.messages",
        dynamic="cluster",
        doc="Records after which a partition is flushed to disk.",
    )
    flush_ms: int = option(
        "flush.ms",
        "long",
        default=2**63 - 1,
        at_least=0,
        synonym="log.flush.interval.ms",
        dynamic="cluster",
        doc="Longest time that a record waits to be flushed to disk.",
    )
    follower_replication_throttled_replicas: tuple[str, ...] = option(
        "follower.replication.throttled.replicas",
        "list",
        default=(),
        dynamic="cluster",
        doc="Replicas that are throttled as followers, as partition:broker, or * for all.",
    )
    leader_replication_throttled_replicas: tuple[str, ...] = option(
        "leader.replication.throttled.replicas",
        "list",
        default=(),
        dynamic="cluster",
        doc="Replicas that are throttled as leaders, as partition:broker, or * for all.",
    )
    index_interval_bytes: int = option(
        "index.interval.bytes",
        "int",
        default=4_096,
        at_least=0,
        synonym="log.index.interval.bytes",
        dynamic="cluster",
        doc="Bytes of records between two entries of the offset index.",
    )
    max_compaction_lag_ms: int = option(
        "max.compaction.lag.ms",
        "long",
        default=2**63 - 1,
        at_least=1,
        synonym="log.cleaner.max.compaction.lag.ms",
        dynamic="cluster",
        doc="Time after which a record must become compactable.",
    )
    max_message_bytes: int = option(
        "max.message.bytes",
        "int",
        default=1_048_588,
        at_least=0,
        synonym="message.max.bytes",
        dynamic="cluster",
        doc="Largest record batch that is accepted.",
    )
    message_timestamp_after_max_ms: int = option(
        "message.timestamp.after.max.ms",
        "long",
        default=2**63 - 1,
        at_least=0,
        synonym="log.message.timestamp.after.max.ms",
        dynamic="cluster",
        doc="How far a record's time may lie in the future.",
    )
    message_timestamp_before_max_ms: int = option(
        "message.timestamp.before.max.ms",
        "long",
        default=2**63 - 1,
        at_least=0,
        synonym="log.message.timestamp.before.max.ms",
        dynamic="cluster",
        doc="How far a record's time may lie in the past.",
    )
    message_timestamp_type: str = option(
        "message.timestamp.type",
        "string",
        default="CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        synonym="log.message.timestamp.type",
        dynamic="cluster",
        doc="Whether a record keeps its producer's time or gets the time of the append.",
    )
    min_cleanable_dirty_ratio: float = option(
        "min.cleanable.dirty.ratio",
        "double",
        default=0.5,
        at_least=0,
        at_most=1,
        synonym="log.cleaner.min.cleanable.ratio",
        dynamic="cluster",
        doc="Share of uncompacted bytes at which a log is compacted.",
    )
    min_compaction_lag_ms: int = option(
        "min.compaction.lag.ms",
        "long",
        default=0,
        at_least=0,
        synonym="log.cleaner.min.compaction.lag.ms",
        dynamic="cluster",
        doc="Time for which a record is safe from compaction.",
    )
    min_insync_replicas: int = option(
        "min.insync.replicas",
        "int",
        default=1,
        at_least=1,
        synonym="min.insync.replicas",
        dynamic="cluster",
        doc="Replicas that must have a record before acks=all is answered.",
    )
    preallocate: bool = option(
        "preallocate",
        "boolean",
        default=False,
        synonym="log.preallocate",
        dynamic="cluster",
        doc="Whether a segment file is given its full size when it is made.",
    )
    retention_bytes: int = option(
        "retention.bytes",
        "long",
        default=-1,
        synonym="log.retention.bytes",
        dynamic="cluster",
        doc="Size of a partition above which its oldest segments go; -1 sets no bound.",
    )
    retention_ms: int = option(
        "retention.ms",
        "long",
        default=604_800_000,
        at_least=-1,
        synonym="log.retention.ms",
        dynamic="cluster",
        doc="How long records are kept; -1 for ever.",
    )
    segment_bytes: int = option(
        "segment.bytes",
        "int",
        default=1_073_741_824,
        at_least=14,
        synonym="log.segment.bytes",
        dynamic="cluster",
        doc="Size at which a segment is closed and the next one begins.",
    )
    segment_index_bytes: int = option(
        "segment.index.bytes",
        "int",
        default=10_485_760,
        at_least=4,
        synonym="log.index.size.max.bytes",
        dynamic="cluster",
        doc="Size of an index file at which its segment is closed.",
    )
    segment_jitter_ms: int = option(
        "segment.jitter.ms",
        "long",
        default=0,
        at_least=0,
        synonym="log.roll.jitter.ms",
        dynamic="cluster",
        doc="Random part by which a segment is closed early.",
    )
    segment_ms: int = option(
        "segment.ms",
        "long",
        default=604_800_000,
        at_least=1,
        synonym="log.roll.ms",
        dynamic="cluster",
        doc="Age at which a segment is closed.",
    )
    unclean_leader_election_enable: bool = option(
        "unclean.leader.election.enable",
        "boolean",
        default=False,
        synonym="unclean.leader.election.enable",
        dynamic="cluster",
        doc="Whether a replica that lags may lead when no other is left, losing records.",
    )
    message_downconversion_enable: bool = option(
        "message.downconversion.enable",
        "boolean",
        default=True,
        synonym="log.message.downconversion.enable",
        dynamic="cluster",
        doc="Whether old fetches are answered by converting batches to old formats.",
    )
    message_format_version: str = option(
        "message.format.version",
        "string",
        default="3.0-IV1",
        synonym="log.message.format.version",
        dynamic="cluster",
        reserved="records are stored in format v2 alone",
        doc="Format in which records are stored.",
    )
    remote_storage_enable: bool = option(
        "remote.storage.enable",
        "boolean",
        default=False,
        dynamic="cluster",
        refused=TIERED,
        doc="Whether closed segments move to a remote tier.",
    )
    local_retention_ms: int = option(
        "local.retention.ms",
        "long",
        default=-2,
        at_least=-2,
        synonym="log.local.retention.ms",
        dynamic="cluster",
        reserved=TIERED,
        doc="How long records stay on the local disk.",
    )
    local_retention_bytes: int = option(
        "local.retention.bytes",
        "long",
        default=-2,
        at_least=-2,
        synonym="log.local.retention.bytes",
        dynamic="cluster",
        reserved=TIERED,
        doc="Bytes of a partition that stay on the local disk.",
    )

    compact: bool
    """Whether cleanup.policy holds compact."""

    delete: bool
    """Whether cleanup.policy holds delete."""

    segment_ms_max: int
    """segment.ms, in compacted topics at most max.compaction.lag.ms."""

    @classmethod
    def resolve(cls, broker: BrokerOptions, overrides: Mapping[str, object]) -> TopicOptions:
        """Return the options of a topic with these overrides on this broker."""
        attributes: dict[str, Any] = {}
        for attribute, default, sources in _FALLBACKS:
            value = None
            for source, factor in sources:
                value = getattr(broker, source)
                if value is not None:
                    # A negative time means for ever, in whatever unit.
                    value = value if factor == 1 else max(value * factor, -1)
                    break
            attributes[attribute] = default if value is None else value
        return cls._build(attributes, overrides)

    def _derive(self, attributes: dict[str, Any]) -> None:
        attributes["compact"] = "compact" in self.cleanup_policy
        attributes["delete"] = "delete" in self.cleanup_policy
        attributes["segment_ms_max"] = (
            min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms
        )


_FALLBACKS: tuple[tuple[str, Any, tuple[tuple[str, int], ...]], ...] = tuple(
    (
        declared.attribute,
        declared.default,
        tuple((attribute_name(name), to_ms(name)) for name in aliases(declared.synonym))
        if declared.synonym
        else (),
    )
    for declared in TopicOptions.options.values()
)
"""Per topic option: its attribute, its default, and the broker's attributes to ask before that."""


_REPLICA = re.compile("[0-9]+:[0-9]+")


def validate_overrides(
    overrides: Mapping[str, object | None], broker: BrokerOptions
) -> TopicOptions:
    """Return the options that these overrides give on this broker, or raise ConfigError.

    A name that no topic option has is an error here.
    """
    for name in overrides:
        if name not in TopicOptions.options:
            raise ConfigError(f"{name}: no such topic option{suggest(name, TopicOptions.options)}")
        if overrides[name] is None:
            raise ConfigError(f"{name}: a value is needed")
    options = TopicOptions.resolve(broker, overrides)
    # Here and not in `resolve`: a broker's option that changes later must not spoil a topic.
    if options.min_compaction_lag_ms > options.max_compaction_lag_ms:
        raise ConfigError(
            f"min.compaction.lag.ms={options.min_compaction_lag_ms}: must be at most "
            f"max.compaction.lag.ms ({options.max_compaction_lag_ms})"
        )
    for name, listed in (
        ("leader.replication.throttled.replicas", options.leader_replication_throttled_replicas),
        (
            "follower.replication.throttled.replicas",
            options.follower_replication_throttled_replicas,
        ),
    ):
        if listed != ("*",) and not all(_REPLICA.fullmatch(each) for each in listed):
            raise ConfigError(
                f"{name}={','.join(listed)}: must be * or a list of partition:broker, like 0:1,1:2"
            )
    return options
