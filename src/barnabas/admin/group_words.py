"""The states and types of groups as they are on the wire."""

from __future__ import annotations

from enum import Enum, StrEnum

from barnabas.admin.numbered import chosen


class GroupState(StrEnum):
    """The state of a group."""

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"


class GroupType(StrEnum):
    """The protocol of a group."""

    UNKNOWN = "Unknown"
    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"


def word(kind: type[Enum], given: object) -> str:
    """Return the wire's string for a member, its name or the string itself."""
    return str(chosen(kind, given).value)
