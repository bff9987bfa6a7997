"""A fetch session with one broker (KIP-227): it remembers partitions, so only changes are sent.

A plain object. A session begins with a full fetch that names every partition; when the broker opens
a session, later fetches name what is new, what moved, and what to forget. Whenever either side may
have lost track, the next fetch is full again. `end` releases the broker's memory of the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition, Uuid
from barnabas.wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

_NO_SESSION = 0
_FULL = 0
_SESSIONLESS = -1
_FINAL = -1  # with a session id, the same number closes the session
_EPOCH_MAX = 2**31 - 1

SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class Wanted(NamedTuple):
    """What to fetch of one partition."""

    partition: TopicPartition
    topic_id: Uuid
    offset: int
    leader_epoch: int


class Plan(NamedTuple):
    """The contents of one fetch: the session, the partitions to name, those to forget."""

    session_id: int
    epoch: int
    named: list[Wanted]
    forgotten: list[Wanted]

    @property
    def is_full(self) -> bool:
        return self.epoch in (_FULL, _SESSIONLESS)


class FetchSession:
    """The session with one broker."""

    def __init__(self, *, enabled: bool = True) -> None:
        self._enabled = enabled
        self._id = _NO_SESSION
        self._epoch = _FULL
        self._known: dict[TopicPartition, Wanted] = {}
        self._by_id = True

    @property
    def partitions(self) -> Iterable[TopicPartition]:
        """The partitions that the broker remembers once the last plan has reached it."""
        return self._known

    def plan(self, wanted: Mapping[TopicPartition, Wanted], *, by_id: bool = True) -> Plan:
        """Return the contents of the next fetch, so that it covers exactly these partitions."""
        if by_id != self._by_id:  # a session names all topics by id, or all by name
            self._by_id = by_id
            self._epoch = _FULL
        if not self._enabled:
            self._known = dict(wanted)
            return Plan(_NO_SESSION, _SESSIONLESS, list(wanted.values()), [])
        if self._epoch == _FULL:
            self._known = dict(wanted)
            return Plan(self._id, _FULL, list(wanted.values()), [])
        known = self._known
        named = [want for want in wanted.values() if known.get(want.partition) != want]
        forgotten = [
            was
            for partition, was in known.items()
            if partition not in wanted or wanted[partition].topic_id != was.topic_id
        ]
        self._known = dict(wanted)
        return Plan(self._id, self._epoch, named, forgotten)

    def answered(self, plan: Plan, code: ErrorCode, session_id: int) -> None:
        """Update the session from a response."""
        if code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id, self._epoch = _NO_SESSION, _FULL
        elif code is not ErrorCode.NONE:
            self.failed()
        elif plan.is_full:
            # A broker without room for a session responds with id 0.
            self._id = session_id
            self._epoch = 1 if session_id != _NO_SESSION else _FULL
        else:
            self._epoch = 1 if self._epoch == _EPOCH_MAX else self._epoch + 1

    def end(self) -> Plan | None:
        """Return the final fetch of the session, which names no partition; None without one."""
        if self._id == _NO_SESSION:
            return None
        last = Plan(self._id, _FINAL, [], [])
        self._id, self._epoch, self._known = _NO_SESSION, _FULL, {}
        return last

    def failed(self) -> None:
        """Close the session and begin another: a response was lost or is an error."""
        self._epoch = _FULL


def fetch_topics(wants: list[Wanted], partition_bytes_max: int) -> list[FetchTopic]:
    """Return the partitions to fetch in wire format."""
    topics: dict[str, FetchTopic] = {}
    for want in wants:
        name, index = want.partition
        topic = topics.get(name)
        if topic is None:
            topic = topics[name] = FetchTopic(topic=name, topic_id=want.topic_id, partitions=[])
        topic.partitions.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=want.leader_epoch,
                fetch_offset=want.offset,
                partition_max_bytes=partition_bytes_max,
            )
        )
    return list(topics.values())


def forgotten_topics(wants: list[Wanted]) -> list[ForgottenTopic]:
    """Return the partitions to forget in wire format."""
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for want in wants:
        name, index = want.partition
        topic = topics.get((name, want.topic_id))
        if topic is None:
            topic = ForgottenTopic(topic=name, topic_id=want.topic_id, partitions=[])
            topics[name, want.topic_id] = topic
        topic.partitions.append(index)
    return list(topics.values())
