"""Entries of the diary as pages show them: what happened to many partitions at once is one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from barnabas.console.window import DiaryEntry

ALIKE_MS = 1_000
NAMED_MAX = 3


@dataclass(slots=True)
class Folded:
    """An entry, and the further subjects to which the same happened."""

    entry: DiaryEntry
    others: list[str] = field(default_factory=list)

    @property
    def named(self) -> Sequence[str]:
        """The first of the further subjects."""
        return self.others[:NAMED_MAX]

    @property
    def more(self) -> int:
        """How many are not named."""
        return max(len(self.others) - NAMED_MAX, 0)


def folded(entries: Sequence[DiaryEntry]) -> list[Folded]:
    """Return entries in their order, with those that are alike in one."""
    found: list[Folded] = []
    for each in entries:
        if found and _is_alike(found[-1].entry, each):
            if each.subject not in found[-1].others:
                found[-1].others.append(each.subject)
        else:
            found.append(Folded(each))
    return found


def _is_alike(one: DiaryEntry, other: DiaryEntry) -> bool:
    """Return whether the same happened to another partition at the same time."""
    return (
        ":" not in one.subject + other.subject
        and one.subject != other.subject
        and (one.event, one.cause, one.broker) == (other.event, other.cause, other.broker)
        and abs(one.time_ms - other.time_ms) <= ALIKE_MS
        and all(one.data.get(name) == other.data.get(name) for name in ("removed", "previous"))
        and (one.event != "leader.elected" or one.data.get("leader") == other.data.get("leader"))
    )
