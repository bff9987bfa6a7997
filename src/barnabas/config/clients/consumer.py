"""Options of consumers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from barnabas.config.clients.classes import ROLES, all_found, found, made
from barnabas.config.clients.common import CommonOptions
from barnabas.config.option import option, reserved
from barnabas.model.errors import ConfigError
from barnabas.model.isolation import IsolationLevel


class ConsumerOptions(CommonOptions):
    """What consumers add to the options of all clients."""

    other_names: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "fetch.message.max.bytes": "max.partition.fetch.bytes",
            "fetch.wait.max.ms": "fetch.max.wait.ms",
            "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
        }
    )

    group_id: str | None = option(
        "group.id",
        "string",
        default=None,
        doc="The consumer group; if unset, the consumer reads alone and commits nothing.",
    )
    group_instance_id: str | None = option(
        "group.instance.id",
        "string",
        default=None,
        doc="Static member id: kept across restarts, which then need no rebalance.",
    )
    group_protocol: str = option(
        "group.protocol",
        "string",
        default="classic",
        choices=("classic", "consumer"),
        doc="Who assigns partitions: the members (classic), or the broker (consumer, KIP-848).",
    )
    group_remote_assignor: str | None = option(
        "group.remote.assignor",
        "string",
        default=None,
        doc="Server-side assignor for group.protocol=consumer; unset for the broker's default.",
    )
    partition_assignment_strategy: Any = option(
        "partition.assignment.strategy",
        "object",
        default=("range", "cooperative-sticky"),
        doc="Assignors this member supports, in order of preference: names, classes, class names "
        "or objects. kafka-python has range and roundrobin, aiokafka roundrobin.",
    )
    session_timeout_ms: int = option(
        "session.timeout.ms",
        "int",
        default=45_000,
        at_least=1,
        doc="Time without a heartbeat after which a member is considered dead.",
    )
    heartbeat_interval_ms: int = option(
        "heartbeat.interval.ms",
        "int",
        default=3_000,
        at_least=1,
        doc="Time between heartbeats; at most a third of the session timeout.",
    )
    max_poll_interval_ms: int = option(
        "max.poll.interval.ms",
        "int",
        default=300_000,
        at_least=1,
        doc="Maximum time between polls before the member leaves the group.",
    )
    rebalance_timeout_ms: int | None = option(
        "rebalance.timeout.ms",
        "int",
        default=None,
        at_least=1,
        doc="How long a rebalance waits for this member; unset: max.poll.interval.ms.",
    )
    enable_auto_commit: bool = option(
        "enable.auto.commit",
        "boolean",
        default=True,
        doc="Whether polled offsets are committed periodically, during later polls.",
    )
    auto_commit_interval_ms: int = option(
        "auto.commit.interval.ms",
        "int",
        default=5_000,
        at_least=0,
        doc="Interval between automatic commits.",
    )
    default_offset_commit_callback: Callable[..., object] | None = option(
        "default.offset.commit.callback",
        "object",
        default=None,
        doc="Called with (offsets, failure or None) after each asynchronous commit.",
    )
    auto_offset_reset: str = option(
        "auto.offset.reset",
        "string",
        default="latest",
        doc="Where to start if there is no committed offset or it is out of range: earliest, "
        "latest, by_duration:PT1H (records that old), or none (raise an error).",
    )
    isolation_level: str = option(
        "isolation.level",
        "string",
        default=IsolationLevel.READ_UNCOMMITTED.value,
        choices=tuple(level.value for level in IsolationLevel),
        doc="Whether records of open and aborted transactions are returned.",
    )
    key_deserializer: Any = option(
        "key.deserializer",
        "object",
        default=None,
        doc="Deserializer for keys: a function of bytes, an object with `deserialize`, a class or "
        "its name (barnabas.serialization has Kafka's); unset: keys are bytes.",
    )
    value_deserializer: Any = option(
        "value.deserializer",
        "object",
        default=None,
        doc="Deserializer for values, like key.deserializer; unset: values are bytes.",
    )
    deserializer_encoding: str | None = option(
        "deserializer.encoding",
        "string",
        default=None,
        doc="Encoding of StringDeserializer and UUIDDeserializer if the next two are unset; UTF-8 "
        "by default.",
    )
    key_deserializer_encoding: str | None = option(
        "key.deserializer.encoding", "string", default=None, doc="Encoding for keys."
    )
    value_deserializer_encoding: str | None = option(
        "value.deserializer.encoding", "string", default=None, doc="Encoding for values."
    )
    list_key_deserializer_inner: Any = option(
        "list.key.deserializer.inner",
        "object",
        default=None,
        doc="Deserializer for list items if key.deserializer is ListDeserializer.",
    )
    list_value_deserializer_inner: Any = option(
        "list.value.deserializer.inner",
        "object",
        default=None,
        doc="Deserializer for list items if value.deserializer is ListDeserializer.",
    )
    _without_effect = reserved(
        """
        list.key.deserializer.type    string  -  no  PYTHON_LISTS  List class ListDeserializer returns for keys.
        list.value.deserializer.type  string  -  no  PYTHON_LISTS  List class ListDeserializer returns for values.
        """  # noqa: E501
    )
    fetch_min_bytes: int = option(
        "fetch.min.bytes",
        "int",
        default=1,
        at_least=0,
        doc="Minimum bytes per fetch response; the broker waits up to fetch.max.wait.ms for them.",
    )
    fetch_max_wait_ms: int = option(
        "fetch.max.wait.ms",
        "int",
        default=500,
        at_least=0,
        doc="How long a broker waits for fetch.min.bytes.",
    )
    fetch_max_bytes: int = option(
        "fetch.max.bytes",
        "int",
        default=52_428_800,
        at_least=0,
        doc="Maximum bytes per fetch response; a larger first batch is returned anyway.",
    )
    max_partition_fetch_bytes: int = option(
        "max.partition.fetch.bytes",
        "int",
        default=1_048_576,
        at_least=0,
        doc="Maximum bytes per partition and response; about as much is prefetched.",
    )
    enable_incremental_fetch_sessions: bool = option(
        "enable.incremental.fetch.sessions",
        "boolean",
        default=True,
        doc="Whether to use incremental fetch sessions (KIP-227).",
    )
    max_poll_records: int | None = option(
        "max.poll.records",
        "int",
        default=500,
        at_least=1,
        doc="Maximum number of records returned by one poll.",
    )
    check_crcs: bool = option(
        "check.crcs",
        "boolean",
        default=True,
        doc="Whether the CRC of every batch is verified.",
    )
    barnabas_unpacked_record_max_bytes: int = option(
        "barnabas.unpacked.record.max.bytes",
        "int",
        default=16_777_216,
        at_least=1,
        doc="Largest record decompressed from a compressed batch, unless four times the size of "
        "the batch is more.",
    )
    allow_auto_create_topics: bool = option(
        "allow.auto.create.topics",
        "boolean",
        default=True,
        doc="Whether brokers may create missing topics that are subscribed to.",
    )
    exclude_internal_topics: bool = option(
        "exclude.internal.topics",
        "boolean",
        default=True,
        doc="Whether pattern subscriptions exclude internal topics.",
    )
    interceptor_classes: Any = option(
        "interceptor.classes",
        "object",
        default=(),
        doc="Objects with on_consume, on_commit and close, their classes or class names.",
    )
    default_api_timeout_ms: int = option(
        "default.api.timeout.ms",
        "int",
        default=60_000,
        at_least=0,
        doc="Default timeout of calls that are given none.",
    )
    consumer_timeout_ms: float | None = option(
        "consumer.timeout.ms",
        "double",
        default=None,
        doc="How long iteration waits for a record before it ends; unset: forever. The asyncio "
        "consumer ignores it.",
    )
    metric_group_prefix: str = option(
        "metric.group.prefix", "string", default="consumer", doc="Prefix of metric group names."
    )

    def _derive(self, attributes: dict[str, Any]) -> None:
        super()._derive(attributes)
        self._derive_classes(attributes)
        if self.group_instance_id is not None and self.group_id is None:
            raise ConfigError(f"group.instance.id={self.group_instance_id}: needs group.id")
        if self.fetch_max_wait_ms >= self.request_timeout_ms:
            raise ConfigError(
                f"fetch.max.wait.ms={self.fetch_max_wait_ms}: must be less than "
                f"request.timeout.ms ({self.request_timeout_ms})"
            )
        largest = self.fetch_max_bytes + self.max_partition_fetch_bytes
        if self.response_max_bytes < largest:
            # A response may be that large, and rejecting it would stop the consumer for good.
            attributes["response_max_bytes"] = min(largest, (1 << 31) - 1)

    def _derive_classes(self, attributes: dict[str, Any]) -> None:
        deserializer = ROLES["deserializer"]
        attributes["key_deserializer"] = made(
            "key.deserializer", deserializer, self.key_deserializer, self.given, is_key=True
        )
        attributes["value_deserializer"] = made(
            "value.deserializer", deserializer, self.value_deserializer, self.given, is_key=False
        )
        attributes["interceptor_classes"] = all_found(
            "interceptor.classes", ROLES["interceptor"], self.interceptor_classes
        )
        attributes["partition_assignment_strategy"] = all_found(
            "partition.assignment.strategy", ROLES["assignor"], self.partition_assignment_strategy
        )
        attributes["default_offset_commit_callback"] = found(
            "default.offset.commit.callback",
            ROLES["callback"],
            self.default_offset_commit_callback,
        )
