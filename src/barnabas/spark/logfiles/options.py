"""Options of `format("barnabas-log")`: which files are read, and which of their records.

Names are case-insensitive, as Spark passes them in any case. An unknown name or a wrong value
is rejected with one line that names the option, the value and what is allowed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from fnmatch import fnmatchcase

from barnabas.config.option import suggest
from barnabas.model.errors import ConfigError
from barnabas.model.ids import TopicPartition
from barnabas.records.bounds import READING, RECORD_MAX, RECORD_OPTION, Bounds
from barnabas.spark.cores import cores
from barnabas.spark.offset_limits import parse_partitions

NAMES = (
    "topics",
    "partitions",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "includeHeaders",
    "includeControl",
    "includePlace",
    "readCommitted",
    "onCorrupt",
    "minPartitions",
    "maxBytesPerTask",
    RECORD_OPTION,
)
_SPARKS_OWN = frozenset({"path", "paths"})

BYTES_PER_TASK = 128 * 1024 * 1024
OFFSET_MAX = 2**63 - 1


class OnCorrupt(Enum):
    """How to handle bytes that are not a batch."""

    FAIL = "fail"
    SKIP = "skip"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class LogColumns:
    """The options that determine the columns."""

    headers: bool = False
    control: bool = False
    location: bool = True
    corrupt: bool = False


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What a query reads of a directory; times in milliseconds since 1970, ends not included."""

    paths: tuple[str, ...]
    topics: tuple[str, ...] = ()
    partitions: frozenset[int] | None = None
    starts: Mapping[TopicPartition, int] | int = 0
    ends: Mapping[TopicPartition, int] | int = OFFSET_MAX
    from_ms: int | None = None
    to_ms: int | None = None
    committed: bool = False
    on_corrupt: OnCorrupt = OnCorrupt.FAIL
    columns: LogColumns = LogColumns()
    tasks_min: int = 1
    bytes_per_task: int = BYTES_PER_TASK
    bounds: Bounds = READING

    def covers(self, partition: TopicPartition) -> bool:
        """Return whether a partition is read."""
        if self.partitions is not None and partition.partition not in self.partitions:
            return False
        return not self.topics or any(fnmatchcase(partition.topic, each) for each in self.topics)

    def offsets(self, partition: TopicPartition) -> tuple[int, int]:
        """Return the first offset to read of a partition, and the one to stop at."""
        start = self.starts if isinstance(self.starts, int) else self.starts.get(partition, 0)
        end = self.ends if isinstance(self.ends, int) else self.ends.get(partition, OFFSET_MAX)
        return start, end


def parse_log_columns(options: Mapping[str, str]) -> LogColumns:
    """Read the options that determine the columns; raise ConfigError for a wrong name or value."""
    given = _known(options)
    return LogColumns(
        headers=_flag(given, "includeHeaders", False),
        control=_flag(given, "includeControl", False),
        location=_flag(given, "includePlace", True),
        corrupt=_on_corrupt(given) is OnCorrupt.REPORT,
    )


def parse_log(options: Mapping[str, str]) -> LogOptions:
    """Read all options; raise ConfigError for a wrong name or value."""
    given = _known(options)
    topics = tuple(part.strip() for part in given.get("topics", "").split(",") if part.strip())
    if "topics" in given and not topics:
        raise ConfigError(f"topics={given['topics']}: must name at least one topic")
    return LogOptions(
        paths=_paths(options),
        topics=topics,
        partitions=_partitions(given),
        starts=_offsets(given, "startingOffsets", "earliest", 0),
        ends=_offsets(given, "endingOffsets", "latest", OFFSET_MAX),
        from_ms=_time_ms(given, "startingTimestamp"),
        to_ms=_time_ms(given, "endingTimestamp"),
        committed=_flag(given, "readCommitted", False),
        on_corrupt=_on_corrupt(given),
        columns=parse_log_columns(options),
        tasks_min=_count(given, "minPartitions", cores()),
        bytes_per_task=_count(given, "maxBytesPerTask", BYTES_PER_TASK),
        bounds=Bounds(_count(given, RECORD_OPTION, RECORD_MAX)),
    )


def _known(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options by lower-case names; reject unknown ones."""
    names = {name.lower(): name for name in NAMES}
    given = {}
    for name, value in options.items():
        lower = name.lower()
        if lower in _SPARKS_OWN:
            continue
        if lower not in names:
            close = suggest(lower, names)
            for each, shown in names.items():
                close = close.replace(f" {each}?", f" {shown}?")
            raise ConfigError(f"{name}: no such option{close}")
        given[lower] = value
    return given


def _paths(options: Mapping[str, str]) -> tuple[str, ...]:
    """Return the argument of `load`: Spark passes one as `path`, several as JSON in `paths`."""
    given = {name.lower(): value for name, value in options.items()}
    found = json.loads(given["paths"]) if "paths" in given else []
    if "path" in given:
        found = [given["path"], *found]
    if not found:
        raise ConfigError("load: needs a data directory, the directory of a partition, or a file")
    return tuple(found)


def _partitions(given: Mapping[str, str]) -> frozenset[int] | None:
    text = given.get("partitions")
    if text is None:
        return None
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = (each.strip() for each in part.partition("-"))
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ConfigError(f"partitions={text}: must be numbers and ranges, such as 0,2,5-7")
        numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


def _offsets(
    given: Mapping[str, str], name: str, whole: str, default: int
) -> Mapping[TopicPartition, int] | int:
    text = given.get(name.lower(), whole).strip()
    if text.lower() == whole:
        return default
    if text.isdigit():
        return int(text)
    if not text.startswith("{"):
        raise ConfigError(
            f'{name}={text}: must be {whole}, an offset, or JSON like {{"t": {{"0": 5}}}}'
        )
    return parse_partitions(name, text, at_least=0)


def _time_ms(given: Mapping[str, str], name: str) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return None
    if text.strip().isdigit():
        return int(text)
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as failure:
        raise ConfigError(
            f"{name}={text}: must be milliseconds since 1970 or a time like 2026-01-31T12:00:00Z"
        ) from failure
    # Executors may be in other time zones than the driver: a time without one is in UTC.
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _on_corrupt(given: Mapping[str, str]) -> OnCorrupt:
    text = given.get("oncorrupt", OnCorrupt.FAIL.value)
    try:
        return OnCorrupt(text.lower())
    except ValueError as failure:
        words = ", ".join(each.value for each in OnCorrupt)
        raise ConfigError(f"onCorrupt={text}: must be one of {words}") from failure


def _flag(given: Mapping[str, str], name: str, default: bool) -> bool:
    text = given.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name}={text}: must be true or false")
    return text == "true"


def _count(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name.lower(), str(default)).strip()
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"{name}={text}: must be a whole number, at least 1")
    return int(text)
