"""Where to reset offsets to, as two of Kafka's tools take it: the flags, and what they mean.

Offsets that are requested outside a log become the nearest ones inside, which is said for each.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import Flag, Given, UsageError
from barnabas.cli.kafka.integers import whole_number

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient
    from barnabas.model.ids import TopicPartition

Offsets = dict["TopicPartition", int]
SayEmpty = Callable[["TopicPartition"], None]
"""Called for a partition that has no record since the wanted time."""
SayMoved = Callable[["TopicPartition", str, int], None]
"""Called with what is wrong with a wanted offset, and with the one that replaces it."""

_DURATION = re.compile(
    r"([-+]?)P(?:([-+]?\d+)D)?"
    r"(?:T(?:([-+]?\d+)H)?(?:([-+]?\d+)M)?(?:([-+]?\d+)(?:[.,](\d{0,9}))?S)?)?",
    re.ASCII | re.IGNORECASE,
)


def duration_ms(text: str) -> int:
    """Parse a duration like `P1DT2H3M4.5S`."""
    found = _DURATION.fullmatch(text)
    if found is None or text[-1] in "PpTt":
        raise ValueError("it is not a duration like P1DT2H3M4S")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[1:5])
    fraction = int((found[6] or "").ljust(3, "0")[:3])
    negative = (found[5] or "").startswith("-")
    total = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    total += -fraction if negative else fraction
    return -total if found[1] == "-" else total


def datetime_ms(text: str) -> int:
    """Parse a time like `2026-01-31T12:00:00.000`, in UTC unless it has an offset."""
    if "T" not in text:
        raise ValueError("it does not contain a 'T' according to ISO8601 format")
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


SCENARIOS = (
    Flag("--to-offset", "OFFSET", "to this offset", whole_number),
    Flag("--to-datetime", "DATETIME", "to the first record since YYYY-MM-DDTHH:mm:SS.sss"),
    Flag("--by-duration", "DURATION", "to the first record since PnDTnHnMnS ago"),
    Flag("--to-earliest", help="to the first record"),
    Flag("--to-latest", help="to the end"),
    Flag("--from-file", "FILE", "to the offsets in a CSV file"),
    Flag("--shift-by", "COUNT", "by this many records forward, or back if negative", whole_number),
)


def exclusive(*others: str) -> dict[str, tuple[str, ...]]:
    """Return which scenarios exclude which."""
    keys = (*(flag.key for flag in SCENARIOS), *others)
    return {key: tuple(other for other in keys if other != key) for key in keys}


def moment_ms(given: Given) -> int | None:
    """Return the time that the command line asks for, if it does."""
    key = next((key for key in ("to-datetime", "by-duration") if key in given), None)
    if key is None:
        return None
    try:
        if key == "to-datetime":
            return datetime_ms(given[key])
        return int(time.time() * 1000) - duration_ms(given[key])
    except (ValueError, OverflowError) as failure:
        raise UsageError(
            f"Cannot parse argument '{given[key]}' of option {key}: {failure}"
        ) from failure


async def offsets_since(
    client: ClusterClient,
    partitions: Sequence[TopicPartition],
    moment: int,
    say_empty: SayEmpty,
) -> Offsets:
    """Return the offset of the first record since a time; the end where there is none."""
    from barnabas.admin.offsets import LATEST, list_offsets

    found = await list_offsets(client, dict.fromkeys(partitions, moment))
    young = [partition for partition in partitions if found[partition].offset < 0]
    ends = await list_offsets(client, dict.fromkeys(young, LATEST)) if young else {}
    for partition in young:
        say_empty(partition)
    return {partition: (ends.get(partition) or found[partition]).offset for partition in partitions}


async def inside(
    client: ClusterClient, wanted: Mapping[TopicPartition, int], say_moved: SayMoved
) -> Offsets:
    """Return the offsets, those outside their logs moved inside."""
    from barnabas.cli.offset_reset import bounds, within

    starts, ends = await bounds(client, wanted)
    offsets = within(wanted, starts, ends)
    for partition, offset in wanted.items():
        if offset != offsets[partition]:
            which = "higher than latest" if offset > ends[partition] else "lower than earliest"
            text = f"New offset ({offset}) is {which} offset"
            say_moved(partition, text, offsets[partition])
    return offsets
