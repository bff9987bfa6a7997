"""Why the accumulator rejects a record."""

from __future__ import annotations

from enum import Enum


class Refusal(Enum):
    """Why a record cannot be appended, at least for now."""

    TOPIC = "the partitions of its topic are not known"
    PARTITION = "the partition does not exist"
    MEMORY = "buffer.memory is exhausted"
    SIZE = "it is larger than max.request.size or buffer.memory"
    TYPE = "topic, key, value or headers have a wrong type"
    EMPTY = "it has neither key nor value"
    CLOSED = "the producer is closed, or not in a transaction"
