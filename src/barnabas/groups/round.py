"""What is remembered of a rebalance until it is over: why it began, who came and went, and when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

NAMES_MAX: Final = 20
"""How many members are named in a note; all are counted."""

POLL_TIMEOUT: Final = "poll timeout"
ADMIN: Final = "admin"
"""Words by which clients say, on leaving, that they were too slow, or that a tool removed them."""


class Trigger(NamedTuple):
    """Why members are assigned partitions again."""

    cause: str
    data: Mapping[str, Any] = MappingProxyType({})
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    timed_out: tuple[str, ...] = ()


@dataclass(slots=True)
class Round:
    """A rebalance in progress."""

    cause: str
    began_ms: int
    before: int
    """How many members there were."""
    joined: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    timed_out: list[str] = field(default_factory=list)
    joined_ms: int | None = None
    """When all had rejoined and the wait for the assignment began."""

    @classmethod
    def begun(cls, trigger: Trigger, now_ms: int, members: int) -> Round:
        """Begin a round; `members` counts them after what the trigger says has happened."""
        before = members - len(trigger.joined) + len(trigger.left) + len(trigger.timed_out)
        return cls(trigger.cause, now_ms, before)

    def add(self, trigger: Trigger) -> None:
        """Record who came and went, also while the round is in progress."""
        self.joined += trigger.joined
        self.left += trigger.left
        self.timed_out += trigger.timed_out

    def result(self, generation: int, members: int, now_ms: int) -> dict[str, Any]:
        """Return the numbers of a round that ends."""
        joined_ms = now_ms if self.joined_ms is None else self.joined_ms
        return {
            "generation": generation,
            "before": self.before,
            "after": members,
            "took_ms": now_ms - self.began_ms,
            "joining_ms": joined_ms - self.began_ms,
            "assigning_ms": now_ms - joined_ms,
            "joined": named(self.joined),
            "left": named(self.left),
            "timed_out": named(self.timed_out),
        }


def named(members: list[str]) -> list[str]:
    """Return members to be named in a note."""
    return members[:NAMES_MAX]


def leaving_cause(reason: str | None, *, by_instance: bool) -> str:
    """Return why a member leaves, as far as the request tells.

    `by_instance` says that it was named by its instance id alone, as only tools do.
    """
    said = (reason or "").lower()
    if by_instance or ADMIN in said:
        return "admin-removed"
    return "poll-interval" if POLL_TIMEOUT in said else "member-left"
