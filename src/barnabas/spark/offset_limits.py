"""The offsets that a query starts or ends at: `startingOffsets`, `endingOffsets` and the like.

    startingTimestamp           one time for all partitions
    startingOffsetsByTimestamp  {"t": {"0": 1700000000000}}
    startingOffsets             earliest, latest, or {"t": {"0": 23, "1": -2}}

In JSON, -1 stands for latest and -2 for earliest.

The first one set counts, in this order. `OffsetLimits` returns the specs to ask brokers for
(`list_offsets_specs`) and turns their results into offsets (`resolve`); it does no IO itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from barnabas.model.errors import ConfigError, InvalidValueError
from barnabas.model.ids import EARLIEST, LATEST, TopicPartition

_NAMES = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True, slots=True)
class OffsetLimits:
    """A limit for each partition; `option` is the one that set it, for messages."""

    option: str
    all_partitions: int | None = None
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamps: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp: int | None = None
    none_is_latest: bool = False

    def check(self, partitions: Iterable[TopicPartition]) -> None:
        """Raise unless exactly the partitions that are read have a limit."""
        if self.all_partitions is not None or self.timestamp is not None:
            return
        named = set(self.offsets) | set(self.timestamps)
        wanted = set(partitions)
        for unmatched, what in (
            (wanted - named, "must also name"),
            (named - wanted, "names partitions that are not read:"),
        ):
            if unmatched:
                names = ", ".join(map(str, sorted(unmatched)))
                raise InvalidValueError(f"{self.option}: {what} {names}")

    def list_offsets_specs(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the ListOffsets timestamp of each partition: a time, EARLIEST or LATEST."""
        specs = {}
        for partition in partitions:
            spec = self._spec(partition)
            if spec is not None:
                specs[partition] = spec
        return specs

    def resolve(
        self,
        partitions: Iterable[TopicPartition],
        found: Mapping[TopicPartition, int],
        latest: Mapping[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        """Return an offset for each partition; `found` has the results of the specs, -1: none."""
        resolved = {}
        for partition in partitions:
            offset = found.get(partition, self.offsets.get(partition, LATEST))
            if offset < 0:
                if not self.none_is_latest and self._by_time(partition):
                    raise InvalidValueError(
                        f"{self.option}: {partition} has no record at or after "
                        f"{self._spec(partition)}; startingOffsetsByTimestampStrategy=latest "
                        "would start at its end"
                    )
                offset = latest[partition]
            resolved[partition] = offset
        return resolved

    def _by_time(self, partition: TopicPartition) -> bool:
        return self.timestamp is not None or partition in self.timestamps

    def _spec(self, partition: TopicPartition) -> int | None:
        if self.timestamp is not None:
            return self.timestamp
        if self.all_partitions is not None:
            return self.all_partitions
        if partition in self.timestamps:
            return self.timestamps[partition]
        offset = self.offsets.get(partition)
        return offset if offset is not None and offset < 0 else None


def parse_offset_limits(given: Mapping[str, str], side: str, default: str) -> OffsetLimits:
    """Parse the options of one side, "starting" or "ending", from lower-case names."""

    def value(name: str) -> str | None:
        return given.get(name.lower())

    none_is_latest = side == "ending"
    strategy = value("startingOffsetsByTimestampStrategy")
    if strategy is not None:
        if strategy.lower() not in ("error", "latest"):
            raise ConfigError(
                f"startingOffsetsByTimestampStrategy={strategy}: must be error or latest"
            )
        none_is_latest = none_is_latest or strategy.lower() == "latest"
    name = f"{side}Timestamp"
    text = value(name)
    if text is not None:
        if not text.strip().isdigit():
            raise ConfigError(f"{name}={text}: must be milliseconds since 1970, at least 0")
        return OffsetLimits(name, timestamp=int(text), none_is_latest=none_is_latest)
    name = f"{side}OffsetsByTimestamp"
    text = value(name)
    if text is not None:
        times = parse_partitions(name, text, at_least=0)
        return OffsetLimits(name, timestamps=times, none_is_latest=none_is_latest)
    name = f"{side}Offsets"
    text = value(name) or default
    if text.lower() in _NAMES:
        if side == "ending" and text.lower() == "earliest":
            raise ConfigError(f"{name}=earliest: must be latest or JSON, as nothing would be read")
        return OffsetLimits(name, all_partitions=_NAMES[text.lower()])
    if not text.lstrip().startswith("{"):
        raise ConfigError(
            f'{name}={text}: must be earliest, latest or JSON like {{"t": {{"0": 5}}}}'
        )
    offsets = parse_partitions(name, text, at_least=EARLIEST)
    if side == "ending" and EARLIEST in offsets.values():
        raise ConfigError(f"{name}={text}: an end cannot be -2 (earliest)")
    return OffsetLimits(name, offsets=offsets)


def parse_partitions(name: str, text: str, at_least: int) -> dict[TopicPartition, int]:
    """Parse {"topic": {"partition": number}}."""
    like = '{"topic": {"0": 5}}'
    found = {}
    for topic, numbers in _json_object(name, text, like).items():
        if not isinstance(numbers, dict):
            raise ConfigError(f"{name}={text}: must look like {like}")
        for partition, number in numbers.items():
            if not partition.isdigit() or not isinstance(number, int) or isinstance(number, bool):
                raise ConfigError(f"{name}={text}: must look like {like}")
            if number < at_least:
                raise ConfigError(
                    f"{name}: {number} for {topic}-{partition}: must be at least {at_least}"
                )
            found[TopicPartition(topic, int(partition))] = number
    return found


def parse_assignment(name: str, text: str) -> tuple[TopicPartition, ...]:
    """Parse {"topic": [0, 1]}."""
    like = '{"topic": [0, 1]}'
    found = []
    for topic, numbers in _json_object(name, text, like).items():
        if not isinstance(numbers, list) or not all(
            isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in numbers
        ):
            raise ConfigError(f"{name}={text}: must look like {like}")
        found += [TopicPartition(topic, number) for number in numbers]
    if not found:
        raise ConfigError(f"{name}={text}: must name at least one partition")
    return tuple(sorted(set(found)))


def _json_object(name: str, text: str, like: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise ConfigError(f"{name}={text}: must be JSON like {like}")
    return parsed
