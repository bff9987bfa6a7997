"""What the transaction coordinator asks its host to do, beyond what every coordinator asks.

The host appends `records`; when they are committed it calls `commit`, sends the replies, and has
the markers written by the partitions' leaders. When the append fails it calls `undo` instead, sends
the replies that this returns and drops the markers. An outcome without records has neither `commit`
nor `undo`: its replies and markers leave at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import Outcome


class MarkerRequest(NamedTuple):
    """End markers that partition leaders are to append; handed back with what became of them."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int
    partitions: tuple[TopicPartition, ...]
    attempt: int
    """Tells this request from earlier ones, whose late answers must not count."""


@dataclass(slots=True)
class TransactionOutcome(Outcome):
    """What the host is to do; everything empty means: nothing."""

    commit: Callable[[], None] | None = None
    """Called when the records are committed: what they say holds from then on."""
    markers: list[MarkerRequest] = field(default_factory=list)
    needs_producer_id: bool = False
    """Nothing was decided: the host calls again with a producer id that nobody had before."""
