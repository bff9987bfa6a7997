"""What a coordinator's state machine returns when it handles an event.

A coordinator (of groups, of transactions) is a plain object that keeps its state in memory and in
the records of one partition. It handles a request or a timer, given the time, changes its state
immediately, and returns an `Outcome`: records to append, replies to send, timers to set. Its host
appends the records as one batch, sends the replies when that batch is committed (immediately
without records), and calls back when a timer is due. If the append fails, `undo` restores the
previous state and returns the replies that the waiting clients get instead.

After a restart or a leader change, the host reads the partition from its start and passes each
record to the state machine's `replay`; timers and waiting requests are soft state and start fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.note import Note


class StateRecord(NamedTuple):
    """One record of a coordinator's partition; a value of None deletes the key."""

    key: bytes
    value: bytes | None


class Reply(NamedTuple):
    """The response to a request, which the host identifies by a token."""

    token: Hashable
    response: Any


class TimerChange(NamedTuple):
    """A deadline to set under a key (replacing its previous one), or None to cancel it."""

    key: Hashable
    deadline_ms: int | None


@dataclass(slots=True)
class Outcome:
    """What the host has to do; nothing if everything is empty."""

    replies: list[Reply] = field(default_factory=list)
    records: list[StateRecord] = field(default_factory=list)
    timers: list[TimerChange] = field(default_factory=list)
    undo: Callable[[ErrorCode], list[Reply]] | None = None
    """Called with the error of the append; returns the replies to send instead."""
    producer: tuple[int, int] | None = None
    """Producer id and epoch, when the records belong to that producer's transaction."""
    notes: Sequence[Note] = ()
    """What was decided, for the diary; dropped if the append fails."""

    def note(self, event: str, subject: str, cause: str, data: Mapping[str, Any]) -> None:
        """Add a note; most outcomes have none, and need no list for them."""
        self.notes = (*self.notes, Note(event, subject, cause, data))
