"""A follower's fetch session with one leader (KIP-227): requests contain only what changed.

The leader keeps the list of partitions and responds with those that changed. Both sides count the
requests of a session; anything that breaks the count, or the connection, ends it, and the next
request lists everything again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.model.ids import TopicPartition
from barnabas.replication.follower_fetch import Wanted

NO_SESSION = 0
INITIAL_EPOCH = 0
EPOCH_MAX = 2**31 - 1


class Asked(NamedTuple):
    """One request: the session's epoch, what changed since the last one, what is removed."""

    session_id: int
    epoch: int
    changed: Sequence[Wanted]
    forgotten: Sequence[Wanted]


class FollowerFetchSession:
    """What this follower wants, and what the leader believes that it wants."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._wanted: dict[TopicPartition, Wanted] = {}
        self._told: dict[TopicPartition, Wanted] = {}
        self._untold: dict[TopicPartition, None] = {}

    @property
    def is_empty(self) -> bool:
        """Return whether there is nothing to fetch."""
        return not self._wanted

    def want(self, key: TopicPartition, wanted: Wanted | None) -> None:
        """Set how a partition is fetched from now on, or None not to fetch it."""
        # A changed partition moves to the end: others come first when all are listed.
        self._wanted.pop(key, None)
        if wanted is not None:
            self._wanted[key] = wanted
        self._untold[key] = None

    def ask(self) -> Asked:
        """Return the request that makes the leader's list the wanted one."""
        untold, self._untold = self._untold, {}
        if self._id == NO_SESSION:
            self._told = dict(self._wanted)
            return Asked(NO_SESSION, INITIAL_EPOCH, list(self._told.values()), ())
        changed: list[Wanted] = []
        forgotten: list[Wanted] = []
        for key in untold:
            before, now = self._told.pop(key, None), self._wanted.get(key)
            # A recreated topic has a new id, and its old one must be removed.
            if before is not None and (now is None or now.topic_id != before.topic_id):
                forgotten.append(before)
            if now is not None:
                self._told[key] = now
                if now != before:
                    changed.append(now)
        return Asked(self._id, self._epoch, changed, forgotten)

    def answered(self, session_id: int) -> None:
        """Handle the leader's response, in this session (0: it keeps none)."""
        if session_id != self._id:
            self._id, self._epoch = session_id, INITIAL_EPOCH
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def end(self) -> None:
        """List everything again in the next request."""
        self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
