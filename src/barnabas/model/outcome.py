"""What a coordinator's machine answers with when it is told that something happened.

A coordinator (of groups, of transactions) is a plain object that keeps its state in memory and in
the records of one partition. It is told of a request or a timer together with the time, changes
its state at once, and returns an `Outcome`: records to append, replies to send, timers to set.
Whoever hosts it appends the records as one batch, sends the replies when that batch is committed
(at once without records), and calls back when a timer is due. If the append fails, `undo`
restores what was changed and says what the waiting clients are told instead.

After a restart or a change of leader the host reads the partition from its start and hands each
record to the machine's `replay`; timers and waiting requests are soft state and begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.model.error_codes import ErrorCode


class StateRecord(NamedTuple):
    """One record of a coordinator's partition; a value of None deletes the key."""

    key: bytes
    value: bytes | None


class Reply(NamedTuple):
    """An answer to a request that the host named by a token of its own."""

    token: Hashable
    response: Any


class TimerChange(NamedTuple):
    """A deadline to set under a key (replacing the key's last one), or None to cancel it."""

    key: Hashable
    deadline_ms: int | None


@dataclass(slots=True)
class Outcome:
    """What the host is to do; everything empty means: nothing."""

    replies: list[Reply] = field(default_factory=list)
    records: list[StateRecord] = field(default_factory=list)
    timers: list[TimerChange] = field(default_factory=list)
    undo: Callable[[ErrorCode], list[Reply]] | None = None
    """Called with the append's error instead of sending the replies; returns the replies to send.
    """
    producer: tuple[int, int] | None = None
    """Producer id and epoch, when the records belong to that producer's transaction."""
