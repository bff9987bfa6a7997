"""What the transaction coordinator asks of its host, in addition to what every coordinator does.

The host appends `records`; when they are committed it calls `commit`, sends the replies, and has
the partitions' leaders write the markers. If the append fails it calls `undo` instead, sends the
replies that this returns and drops the markers. An outcome without records has neither `commit` nor
`undo`: its replies and markers are sent immediately.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import Outcome


class MarkerRequest(NamedTuple):
    """Markers that partition leaders are to append; returned with their results."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int
    partitions: tuple[TopicPartition, ...]
    attempt: int
    """Distinguishes this request from earlier ones, whose late results must be ignored."""


@dataclass(slots=True)
class TransactionOutcome(Outcome):
    """What the host is to do; nothing if everything is empty."""

    commit: Callable[[], None] | None = None
    """Called when the records are committed, and take effect."""
    markers: list[MarkerRequest] = field(default_factory=list)
    needs_producer_id: bool = False
    """Nothing was decided: the host calls again with a new producer id."""
