"""Where to reset a group's offsets to, as it is typed into a form.

earliest | latest               the first record kept | after the last one
1500                            an offset
2026-01-31T12:00:00Z            the first record that is not older
+100 | -100                     forward or back from where it is now
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.client.cluster_client import ClusterClient
from barnabas.console.rendering import counted
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

_SHIFT = re.compile(r"[+-][0-9]{1,18}")
_OFFSET = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Move:
    """What a reset does in one partition."""

    partition: TopicPartition
    committed: int | None
    target: int

    @property
    def effect(self) -> str:
        """What the group will read again, or never read."""
        if self.committed is None:
            return "starts here"
        if self.target < self.committed:
            return f"reads {counted(self.committed - self.target, 'offset')} again"
        if self.target > self.committed:
            return f"skips {counted(self.target - self.committed, 'offset')}"
        return "stays"


async def plan_reset(
    client: ClusterClient,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    goal: str,
) -> list[Move]:
    """Return where each partition would go, within its log; raise InvalidValueError."""
    goal = goal.strip()
    at_ms = None
    if goal not in ("earliest", "latest") and not (
        _SHIFT.fullmatch(goal) or _OFFSET.fullmatch(goal)
    ):
        at_ms = _time(goal)
    starts, ends = await asyncio.gather(
        list_offsets(client, dict.fromkeys(partitions, EARLIEST)),
        list_offsets(client, dict.fromkeys(partitions, LATEST)),
    )
    found = (
        await list_offsets(client, dict.fromkeys(partitions, at_ms)) if at_ms is not None else {}
    )
    moves = []
    for partition in sorted(partitions):
        start, end = starts[partition].offset, ends[partition].offset
        now = committed.get(partition)
        if goal == "earliest":
            target = start
        elif goal == "latest":
            target = end
        elif at_ms is not None:
            target = found[partition].offset if found[partition].offset >= 0 else end
        elif goal[0] in "+-":
            if now is None:
                raise InvalidValueError(f"{partition} has no committed offset to step from")
            target = now + int(goal)
        else:
            target = int(goal)
        moves.append(Move(partition, now, min(max(target, start), end)))
    return moves


def _time(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValueError(
            f"{text!r} is none of: earliest, latest, an offset (1500), a time "
            "(2026-01-31T12:00:00Z), a step (+100, -100)"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
