"""Options of the source and the sink, under the names of Spark's own Kafka connector.

Names are case-insensitive, as Spark passes them in any case; names that start with `kafka.` are
passed to the clients. An unknown name or a wrong value is rejected with one line that names the
option, the value and what is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.config.option import suggest
from barnabas.model.errors import ConfigError
from barnabas.spark.cores import cores
from barnabas.spark.offset_limits import OffsetLimits, parse_offset_limits
from barnabas.spark.topic_selection import TopicSelection, parse_topic_selection
from barnabas.spark.values.value_format import ValueFormat, parse_value_format

SOURCE = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "startingTimestamp",
    "endingOffsets",
    "endingOffsetsByTimestamp",
    "endingTimestamp",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "offsetGroup",
    "valueFormat",
    "valueSchema",
    "includeRawValue",
    "transform",
)
SINK = ("topic", "exactlyOnce", "transactionalIdPrefix", "includeHeaders")

_SPARKS_OWN = frozenset({"path", "checkpointlocation", "queryname", "outputmode"})
"""Options that Spark itself adds."""

_OURS_ALONE = (
    "auto.offset.reset",
    "enable.auto.commit",
    "key.deserializer",
    "value.deserializer",
    "key.serializer",
    "value.serializer",
    "interceptor.classes",
    "transactional.id",
)
"""Client options that the source or the sink sets itself."""

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a query reads, and how."""

    client: Mapping[str, str]
    selection: TopicSelection
    starting: OffsetLimits
    ending: OffsetLimits
    offsets_per_trigger_max: int | None
    offsets_per_trigger_min: int | None
    trigger_delay_ms_max: int
    partitions_min: int | None
    records_per_partition_max: int | None
    fail_on_data_loss: bool
    with_headers: bool
    poll_timeout_ms: int
    offset_group: str | None
    value_format: ValueFormat
    transform: str | None

    def tasks(self, partitions: int) -> int:
        """Return the number of tasks for a batch of this many partitions."""
        return max(self.partitions_min or 1, min(partitions, cores()))


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The topics that rows are written to, and how."""

    client: Mapping[str, str]
    topic: str | None
    exactly_once: bool
    transactional_id_prefix: str


def parse_source(options: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """Read the options of a source; raise ConfigError for a wrong name or value."""
    given = _known(options, SOURCE)
    client = _client(given)
    prefix = given.get("groupidprefix")
    if prefix is not None and "group.id" not in client:
        client["group.id"] = prefix
    client |= {"enable.auto.commit": "false", "auto.offset.reset": "none"}
    parse_client_options(ConsumerOptions, client)
    if streaming:
        ends = [name for name in SOURCE if name.startswith("ending") and name.lower() in given]
        if ends:
            raise ConfigError(f"{ends[0]}: a stream has no end; trigger(availableNow=True) has one")
    elif given.get("startingoffsets", "").lower() == "latest":
        raise ConfigError("startingOffsets=latest: must be earliest or JSON in a batch query")
    least = _count(given, "minOffsetsPerTrigger")
    most = _count(given, "maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise ConfigError(
            f"minOffsetsPerTrigger={least}: must be at most maxOffsetsPerTrigger={most}"
        )
    return SourceOptions(
        client=client,
        selection=parse_topic_selection(given),
        starting=parse_offset_limits(given, "starting", "latest" if streaming else "earliest"),
        ending=parse_offset_limits(given, "ending", "latest"),
        offsets_per_trigger_max=most,
        offsets_per_trigger_min=least,
        trigger_delay_ms_max=_duration_ms(given, "maxTriggerDelay", 15 * 60_000),
        partitions_min=_count(given, "minPartitions"),
        records_per_partition_max=_count(given, "maxRecordsPerPartition"),
        fail_on_data_loss=_flag(given, "failOnDataLoss", True),
        with_headers=_flag(given, "includeHeaders", False),
        poll_timeout_ms=_count(given, "kafkaConsumer.pollTimeoutMs") or 120_000,
        offset_group=given.get("offsetgroup"),
        value_format=parse_value_format(given),
        transform=given.get("transform"),
    )


def parse_columns(options: Mapping[str, str]) -> tuple[ValueFormat, bool]:
    """Read the options that determine the source's columns: value format and headers."""
    given = _known(options, SOURCE)
    return parse_value_format(given), _flag(given, "includeHeaders", False)


def parse_sink(options: Mapping[str, str], *, streaming: bool) -> SinkOptions:
    """Read the options of a sink; raise ConfigError for a wrong name or value."""
    given = _known(options, SINK)
    client = _client(given)
    parse_client_options(ProducerOptions, client)
    exactly_once = _flag(given, "exactlyOnce", False)
    if exactly_once and not streaming:
        raise ConfigError("exactlyOnce=true: only a stream has the batch numbers that it needs")
    return SinkOptions(
        client=client,
        topic=given.get("topic"),
        exactly_once=exactly_once,
        transactional_id_prefix=given.get("transactionalidprefix", "barnabas-spark"),
    )


def _known(options: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """Return the options by lower-case names; reject unknown ones."""
    known = {name.lower() for name in names}
    shown = {**dict.fromkeys(names), "kafka.bootstrap.servers": None}
    given = {}
    for name, value in options.items():
        lower = name.lower()
        if lower in _SPARKS_OWN:
            continue
        if lower not in known and not lower.startswith("kafka."):
            close = suggest(lower, {each.lower(): None for each in shown})
            for each in shown:
                close = close.replace(f" {each.lower()}?", f" {each}?")
            raise ConfigError(f"{name}: no such option{close}")
        given[lower] = value
    return given


def _client(given: Mapping[str, str]) -> dict[str, str]:
    client = {
        name.removeprefix("kafka."): value
        for name, value in given.items()
        if name.startswith("kafka.")
    }
    if "bootstrap.servers" not in client:
        raise ConfigError("kafka.bootstrap.servers: must be set to host:port[,host:port]")
    for name in _OURS_ALONE:
        if name in client:
            raise ConfigError(f"kafka.{name}: cannot be set, as the connector sets it itself")
    return client


def _flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name.lower())
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{name}={text}: must be true or false")
    return text.lower() == "true"


def _count(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if not text.strip().isdigit() or int(text) < 1:
        raise ConfigError(f"{name}={text}: must be a whole number, at least 1")
    return int(text)


def _duration_ms(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name.lower())
    if text is None:
        return default
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    unit = found.group(2) if found is not None else ""
    if found is None or (unit or "ms") not in _UNITS_MS:
        raise ConfigError(f"{name}={text}: must be a time like 500ms, 30s, 15m or 1h")
    return int(found.group(1)) * _UNITS_MS[unit or "ms"]
