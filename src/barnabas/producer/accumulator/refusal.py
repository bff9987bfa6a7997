"""Why a record is not taken."""

from __future__ import annotations

from enum import Enum


class Refusal(Enum):
    """What stands against a record, at least for now."""

    TOPIC = "its partitions are not known"
    PARTITION = "there is no such partition"
    MEMORY = "all memory is in use"
    SIZE = "it is larger than a record may be"
    TYPE = "topic, key, value or headers are not of the right types"
    EMPTY = "it has neither key nor value"
    CLOSED = "no records are taken now"
