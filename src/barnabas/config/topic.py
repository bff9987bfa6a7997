"""All options of a topic, and the broker options that they fall back to.

    options = TopicOptions.resolve(broker, {"segment.bytes": "1048576"})
    options.segment_bytes        # the override
    options.retention_ms         # the broker's log.retention.ms, or minutes, or hours

All topic options can be changed at run time: a change resolves a new object. `validate_overrides`
strictly checks what users send; `resolve` ignores unknown names, so that a topic created by a newer
release still loads.
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


def overriding(name: str, synonym: str, **own: Any) -> Any:
    """Declare a topic option that overrides a broker option, and differs from it in `own`."""
    broker = BrokerOptions.options[synonym]
    shared = ("default", "at_least", "at_most", "besides", "choices", "doc", "reserved", "refused")
    fields = {field: getattr(broker, field) for field in shared} | own
    return option(name, broker.kind.name, synonym=synonym, dynamic="cluster", **fields)


class TopicOptions(Section):
    """All options of a topic."""

    barnabas_unpacked_batch_max_bytes: int = overriding(
        "barnabas.unpacked.batch.max.bytes", "barnabas.unpacked.batch.max.bytes"
    )
    barnabas_unpacked_record_max_bytes: int = overriding(
        "barnabas.unpacked.record.max.bytes",
        "barnabas.unpacked.record.max.bytes",
        doc="Memory limit for decompression: the largest record of a compressed batch, unless "
        "max.message.bytes or four times the size of the batch is more.",
    )
    cleanup_policy: tuple[str, ...] = overriding("cleanup.policy", "log.cleanup.policy")
    compression_type: str = overriding("compression.type", "compression.type")
    compression_gzip_level: int = overriding("compression.gzip.level", "compression.gzip.level")
    compression_lz4_level: int = overriding("compression.lz4.level", "compression.lz4.level")
    compression_zstd_level: int = overriding("compression.zstd.level", "compression.zstd.level")
    delete_retention_ms: int = overriding("delete.retention.ms", "log.cleaner.delete.retention.ms")
    file_delete_delay_ms: int = overriding("file.delete.delay.ms", "log.segment.delete.delay.ms")
    flush_messages: int = overriding("flush.messages", "log.flush.interval.messages")
    flush_ms: int = overriding("flush.ms", "log.flush.interval.ms", default=2**63 - 1)
    follower_replication_throttled_replicas: tuple[str, ...] = option(
        "follower.replication.throttled.replicas",
        "list",
        default=(),
        dynamic="cluster",
        doc="Follower replicas to throttle, as partition:broker, or * for all.",
    )
    leader_replication_throttled_replicas: tuple[str, ...] = option(
        "leader.replication.throttled.replicas",
        "list",
        default=(),
        dynamic="cluster",
        doc="Leader replicas to throttle, as partition:broker, or * for all.",
    )
    index_interval_bytes: int = overriding("index.interval.bytes", "log.index.interval.bytes")
    max_compaction_lag_ms: int = overriding(
        "max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"
    )
    max_message_bytes: int = overriding("max.message.bytes", "message.max.bytes")
    message_timestamp_after_max_ms: int = overriding(
        "message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms"
    )
    message_timestamp_before_max_ms: int = overriding(
        "message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms"
    )
    message_timestamp_type: str = overriding("message.timestamp.type", "log.message.timestamp.type")
    min_cleanable_dirty_ratio: float = overriding(
        "min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio"
    )
    min_compaction_lag_ms: int = overriding(
        "min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"
    )
    min_insync_replicas: int = overriding("min.insync.replicas", "min.insync.replicas")
    preallocate: bool = overriding("preallocate", "log.preallocate")
    retention_bytes: int = overriding("retention.bytes", "log.retention.bytes")
    retention_ms: int = overriding(
        "retention.ms", "log.retention.ms", default=604_800_000, at_least=-1, besides=()
    )
    segment_bytes: int = overriding("segment.bytes", "log.segment.bytes")
    segment_index_bytes: int = overriding("segment.index.bytes", "log.index.size.max.bytes")
    segment_jitter_ms: int = overriding("segment.jitter.ms", "log.roll.jitter.ms", default=0)
    segment_ms: int = overriding("segment.ms", "log.roll.ms", default=604_800_000)
    unclean_leader_election_enable: bool = overriding(
        "unclean.leader.election.enable", "unclean.leader.election.enable"
    )
    message_downconversion_enable: bool = overriding(
        "message.downconversion.enable", "log.message.downconversion.enable"
    )
    message_format_version: str = overriding("message.format.version", "log.message.format.version")
    remote_storage_enable: bool = option(
        "remote.storage.enable",
        "boolean",
        default=False,
        dynamic="cluster",
        refused=TIERED,
        doc="Whether closed segments are moved to remote storage.",
    )
    local_retention_ms: int = overriding("local.retention.ms", "log.local.retention.ms")
    local_retention_bytes: int = overriding("local.retention.bytes", "log.local.retention.bytes")

    compact: bool
    """Whether cleanup.policy includes compact."""

    delete: bool
    """Whether cleanup.policy includes delete."""

    segment_ms_max: int
    """segment.ms; at most max.compaction.lag.ms in compacted topics."""

    @classmethod
    def resolve(cls, broker: BrokerOptions, overrides: Mapping[str, object]) -> TopicOptions:
        """Return the options of a topic with these overrides on this broker."""
        attributes: dict[str, Any] = {}
        for attribute, default, sources in _FALLBACKS:
            value = None
            for source, factor in sources:
                value = getattr(broker, source)
                if value is not None:
                    # A negative time means forever, in any unit.
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
"""Per topic option: its attribute, its default, and the broker attributes that precede it."""


_REPLICA = re.compile("[0-9]+:[0-9]+")


def validate_overrides(
    overrides: Mapping[str, object | None], broker: BrokerOptions
) -> TopicOptions:
    """Return the options of a topic with these overrides on this broker; raise ConfigError.

    An unknown name is an error here.
    """
    for name in overrides:
        if name not in TopicOptions.options:
            raise ConfigError(f"{name}: no such topic option{suggest(name, TopicOptions.options)}")
        if overrides[name] is None:
            raise ConfigError(f"{name}: a value is required")
    options = TopicOptions.resolve(broker, overrides)
    # Here and not in `resolve`: a later change of a broker option must not invalidate a topic.
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
