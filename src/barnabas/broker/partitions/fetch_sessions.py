"""Fetch sessions: a consumer names its partitions once, and later requests carry only what changed.

A plain machine. `resolve` turns a request into the partitions to read; `Fetching.select` says
which of the results the answer must carry and remembers what was sent. The rules, by (session id,
epoch):

    (0, -1)   no session: all partitions, every time
    (0, 0)    all partitions, and please remember them
    (id, 0)   forget that session, and as above
    (id, -1)  forget that session, no new one
    (id, n)   the next request of that session: what changed

Most partitions of a large session are at rest: their reader has everything, also the latest
offsets. They cost nothing until `touched` is called for them; a session's `changed` are the others.
From time to time all are checked, for changes without a call (permissions, times, log starts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import Uuid
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, PartitionData

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 2**31 - 1
IDLE_MS_MAX = 120_000
LOOK_MS = 3000

Key = tuple[str | Uuid, int]
NamedPartition = tuple[str, int]


class FetchItem:
    """One partition that a consumer reads, and the offsets last sent for it."""

    __slots__ = (
        "at_rest",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "sent_high_watermark",
        "sent_log_start",
        "topic",
        "topic_id",
    )

    def __init__(self, topic: str, topic_id: Uuid, wanted: FetchPartition) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partition = wanted.partition
        self.sent_high_watermark = -1
        self.sent_log_start = -1
        self.at_rest = False
        """Set by a reader that found nothing to send."""
        self.fetch_offset = wanted.fetch_offset
        self.max_bytes = wanted.partition_max_bytes
        self.current_leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.log_start_offset = wanted.log_start_offset

    def update(self, wanted: FetchPartition) -> None:
        """Set a new position."""
        self.fetch_offset = wanted.fetch_offset
        self.max_bytes = wanted.partition_max_bytes
        self.current_leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.log_start_offset = wanted.log_start_offset


@dataclass(slots=True, eq=False)
class FetchSession:
    """The partitions of one consumer or follower, in the order in which they are served."""

    session_id: int
    privileged: bool
    uses_ids: bool
    last_used_ms: int
    looked_ms: int
    """When all partitions were last checked."""
    epoch: int = 1
    items: dict[Key, FetchItem] = field(default_factory=dict)
    changed: dict[Key, FetchItem] = field(default_factory=dict)
    """The items that are not at rest."""


@dataclass(slots=True)
class Fetching:
    """One request's share of a session: what to read, and how to answer."""

    session_id: int
    named: list[FetchItem]
    session: FetchSession | None = None
    incremental: bool = False
    error: ErrorCode = ErrorCode.NONE

    @property
    def items(self) -> list[FetchItem]:
        """Return what to check now; while a fetch waits, `changed` grows."""
        if self.session is not None and self.incremental:
            return list(self.session.changed.values())
        return self.named

    def select(
        self, results: list[tuple[FetchItem, PartitionData]]
    ) -> list[tuple[FetchItem, PartitionData]]:
        """Return the results that the answer carries, and remember them as sent."""
        if self.session is None:
            return results
        chosen = []
        for item, result in results:
            if self._changed(item, result) or not self.incremental:
                chosen.append((item, result))
            if result.error_code:
                item.sent_high_watermark = (
                    -1
                )  # so that the partition is sent again once it has recovered
            else:
                item.sent_high_watermark = result.high_watermark
                item.sent_log_start = result.log_start_offset
            key = _key(self.session.uses_ids, item)
            if item.at_rest:
                self.session.changed.pop(key, None)
            elif result.records and self.incremental:
                # Partitions that were served go to the end, so that none starves.
                for row in (self.session.items, self.session.changed):
                    if row.pop(key, None) is not None:
                        row[key] = item
        return chosen

    @staticmethod
    def _changed(item: FetchItem, result: PartitionData) -> bool:
        return bool(
            result.records
            or result.error_code
            or result.high_watermark != item.sent_high_watermark
            or result.log_start_offset != item.sent_log_start
            or result.preferred_read_replica != -1
            or result.diverging_epoch is not None
        )


class FetchSessions:
    """All sessions of a broker, at most `slots` of them."""

    def __init__(self, slots: int, draw_id: Callable[[], int]) -> None:
        self._slots = slots
        self._draw_id = draw_id
        self._sessions: dict[int, FetchSession] = {}
        self._readers: dict[NamedPartition, dict[FetchSession, Key]] = {}
        self.evictions = 0
        """How many sessions had to make room for others."""

    @property
    def partition_count(self) -> int:
        """How many partitions all sessions have."""
        return sum(len(session.items) for session in self._sessions.values())

    def __len__(self) -> int:
        return len(self._sessions)

    def touched(self, named: NamedPartition) -> Iterable[FetchSession]:
        """Record a change of a partition; return the sessions in which it was at rest."""
        readers = self._readers.get(named)
        if readers is None:
            return ()
        for session, key in readers.items():
            if key not in session.changed:
                session.changed[key] = session.items[key]
        return tuple(readers)

    def readers_of(self, partitions: Iterable[NamedPartition]) -> set[int]:
        """Return the ids of the sessions that read any of some partitions."""
        return {
            session.session_id for named in partitions for session in self._readers.get(named, ())
        }

    def resolve(
        self,
        request: FetchRequest,
        version: int,
        now_ms: int,
        name_of: Callable[[Uuid], str | None],
        *,
        privileged: bool = False,
        look_ms: int = LOOK_MS,
    ) -> Fetching:
        """Return what a request reads, creating, advancing or closing its session.

        After `look_ms` all of a session's partitions are checked again.
        """
        uses_ids = version >= 13
        if request.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if request.session_id in self._sessions:
                self._drop(self._sessions[request.session_id])
            items = _items(request, uses_ids, name_of)
            if request.session_epoch == FINAL_EPOCH or not items:
                return Fetching(0, list(items.values()))
            session = self._create(items, privileged, uses_ids, now_ms)
            return Fetching(session.session_id if session else 0, list(items.values()), session)
        session = self._sessions.get(request.session_id)
        if session is None:
            return Fetching(0, [], error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.uses_ids != uses_ids:
            return Fetching(0, [], error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        if request.session_epoch != session.epoch:
            return Fetching(0, [], error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        self._update(session, request, uses_ids, name_of)
        session.last_used_ms = now_ms
        if not session.items:
            self._drop(session)
            return Fetching(0, [])
        session.epoch = 1 if session.epoch == EPOCH_MAX else session.epoch + 1
        if now_ms - session.looked_ms >= look_ms:
            session.looked_ms = now_ms
            session.changed = dict(session.items)
        return Fetching(session.session_id, [], session, incremental=True)

    def withdraw(self, fetching: Fetching, items: Iterable[FetchItem]) -> int:
        """Treat what a response would have carried as not sent; return its session id.

        The next request of the session gets it; a session that is new with this request is not
        kept, and its client starts another one.
        """
        session = fetching.session
        if session is None:
            return 0
        if not fetching.incremental:
            if self._sessions.get(session.session_id) is session:
                self._drop(session)
            return 0
        for item in items:
            item.sent_high_watermark = -1
            key = _key(session.uses_ids, item)
            if key in session.items:
                session.changed[key] = item
        return session.session_id

    def _update(
        self,
        session: FetchSession,
        request: FetchRequest,
        uses_ids: bool,
        name_of: Callable[[Uuid], str | None],
    ) -> None:
        for topic in request.topics:
            named = topic.topic_id if uses_ids else topic.topic
            for wanted in topic.partitions:
                key = (named, wanted.partition)
                item = session.items.get(key)
                if item is None:
                    item = session.items[key] = FetchItem(topic.topic, topic.topic_id, wanted)
                    self._read_by(session, key, item)
                else:
                    item.update(wanted)
                session.changed[key] = item
        for forgotten in request.forgotten_topics_data:
            for partition in forgotten.partitions:
                named = forgotten.topic_id if uses_ids else forgotten.topic
                self._forget(session, (named, partition))
        if uses_ids:
            for key, item in session.changed.items():  # what has no name is never at rest
                if not item.topic:
                    item.topic = name_of(item.topic_id) or ""
                    self._read_by(session, key, item)

    def _read_by(self, session: FetchSession, key: Key, item: FetchItem) -> None:
        if item.topic:
            self._readers.setdefault((item.topic, item.partition), {})[session] = key

    def _forget(self, session: FetchSession, key: Key) -> None:
        item = session.items.pop(key, None)
        session.changed.pop(key, None)
        if item is not None:
            self._unread(session, key, item)

    def _unread(self, session: FetchSession, key: Key, item: FetchItem) -> None:
        named = (item.topic, item.partition)
        readers = self._readers.get(named)
        # A topic that was recreated is under another key: that one stays.
        if readers is not None and readers.get(session) == key:
            del readers[session]
            if not readers:
                del self._readers[named]

    def _drop(self, session: FetchSession) -> None:
        del self._sessions[session.session_id]
        for key, item in session.items.items():
            self._unread(session, key, item)

    def _create(
        self, items: dict[Key, FetchItem], privileged: bool, uses_ids: bool, now_ms: int
    ) -> FetchSession | None:
        if len(self._sessions) >= self._slots and not self._evict(len(items), privileged, now_ms):
            return None
        session_id = self._draw_id()
        while session_id == 0 or session_id in self._sessions:
            session_id = self._draw_id()
        session = FetchSession(
            session_id, privileged, uses_ids, now_ms, now_ms, items=dict(items), changed=dict(items)
        )
        self._sessions[session_id] = session
        for key, item in items.items():
            self._read_by(session, key, item)
        return session

    def _evict(self, size: int, privileged: bool, now_ms: int) -> bool:
        """Make room: evict an idle session, else a smaller or less privileged one."""
        if not self._sessions:
            return False
        oldest = min(self._sessions.values(), key=lambda session: session.last_used_ms)
        if now_ms - oldest.last_used_ms > IDLE_MS_MAX:
            self._drop(oldest)
            self.evictions += 1
            return True
        least = min(self._sessions.values(), key=lambda each: (each.privileged, len(each.items)))
        if (least.privileged, len(least.items)) < (privileged, size):
            self._drop(least)
            self.evictions += 1
            return True
        return False


def _items(
    request: FetchRequest, uses_ids: bool, name_of: Callable[[Uuid], str | None]
) -> dict[Key, FetchItem]:
    items: dict[Key, FetchItem] = {}
    for topic in request.topics:
        named: str | Uuid = topic.topic_id if uses_ids else topic.topic
        name = name_of(topic.topic_id) or "" if uses_ids else topic.topic
        topic_id = topic.topic_id
        for wanted in topic.partitions:
            items[named, wanted.partition] = FetchItem(name, topic_id, wanted)
    return items


def _key(uses_ids: bool, item: FetchItem) -> Key:
    return (item.topic_id if uses_ids else item.topic, item.partition)
