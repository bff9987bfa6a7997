"""A follower's fetch session with one leader (KIP-227): only what changed is asked for.

The leader keeps the list of partitions and answers about those with news. Both sides count the
requests of a session; whatever breaks the count, or the connection, ends it, and the next request
names everything again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.model.ids import TopicPartition
from barnabas.replication.pull import Wanted

NO_SESSION = 0
INITIAL_EPOCH = 0
EPOCH_MAX = 2**31 - 1


class Asked(NamedTuple):
    """One request: the session's count, what changed since the last one, what is left out."""

    session_id: int
    epoch: int
    changed: Sequence[Wanted]
    forgotten: Sequence[Wanted]


class PullSession:
    """What the leader believes that this follower wants."""

    def __init__(self) -> None:
        self._id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._known: dict[TopicPartition, Wanted] = {}

    def ask(self, wanted: Sequence[Wanted]) -> Asked:
        """Return the request that makes the leader's list the wanted one."""
        known, self._known = self._known, {each.key: each for each in wanted}
        if self._id == NO_SESSION:
            return Asked(NO_SESSION, INITIAL_EPOCH, wanted, ())
        changed = [each for each in wanted if known.get(each.key) != each]
        forgotten = [
            each
            for key, each in known.items()
            # A topic that was made anew has another id, and its old one must go.
            if (now := self._known.get(key)) is None or now.topic_id != each.topic_id
        ]
        return Asked(self._id, self._epoch, changed, forgotten)

    def answered(self, session_id: int) -> None:
        """The leader has answered, in this session (0: it keeps none)."""
        if session_id != self._id:
            self._id, self._epoch = session_id, INITIAL_EPOCH
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1

    def end(self) -> None:
        """Name everything again with the next request."""
        self._id, self._epoch = NO_SESSION, INITIAL_EPOCH
        self._known = {}
