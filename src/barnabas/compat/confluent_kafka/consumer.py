"""`Consumer`: confluent-kafka's, over our own."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from math import inf
from types import TracebackType
from typing import Any, TypeVar

from barnabas.compat.confluent_kafka.cluster_view import ClusterMetadata, cluster_id, cluster_view
from barnabas.compat.confluent_kafka.config import merged, parse
from barnabas.compat.confluent_kafka.credentials import use_password
from barnabas.compat.confluent_kafka.error import KafkaError, KafkaException
from barnabas.compat.confluent_kafka.error_codes import text_of
from barnabas.compat.confluent_kafka.events import Events, seconds
from barnabas.compat.confluent_kafka.failures import error_of
from barnabas.compat.confluent_kafka.message import Message, consumed
from barnabas.compat.confluent_kafka.notes import Notes
from barnabas.compat.confluent_kafka.partitions import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    TopicPartition,
    from_commit,
    from_key,
    listed,
    to_commit,
    with_error,
)
from barnabas.compat.confluent_kafka.reading import RecordReader
from barnabas.compat.confluent_kafka.rebalancing import RebalanceCallback, Rebalancing
from barnabas.compat.confluent_kafka.stored import StoredOffsets
from barnabas.compat.confluent_kafka.turns import Turns
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.consumer.reset import ResetPolicy
from barnabas.consumer.subscription import Mode
from barnabas.model import ids
from barnabas.model.errors import BarnabasError
from barnabas.model.group_metadata import ConsumerGroupMetadata
from barnabas.structs import OffsetAndMetadata

Self = TypeVar("Self", bound="Consumer")
Take = Callable[[float, int], "list[Message[Any, Any]]"]
"""Takes messages: how many milliseconds to wait for some, how many at most."""

_SLICE_S = 0.05
"""How long a poll waits before it looks for errors, and lets other threads call."""

_SLICE_WITH_EOF_S = 0.02

_BATCH_MAX = 1_000_000


class Consumer:
    """Reads messages one by one, or in lists; errors may be returned in their place."""

    def __init__(self, *config: Mapping[str, Any], **keywords: Any) -> None:
        options, settings = parse(ConsumerOptions, merged(config, keywords))
        if options.group_id is None:
            raise ValueError("Failed to create consumer: group.id must be set")
        self._settings = settings
        self._options = options
        self._events = Events()
        self._lock = Turns()
        self._closed = False
        self._in_rebalance = 0
        self._stored = StoredOffsets(automatic=settings.auto_offset_store)
        self._commit_due_s = 0.0
        given = dict(options.given)
        if settings.on_commit is not None:
            given["default.offset.commit.callback"] = self._committed
        self._reader = RecordReader(settings, self._events, given)
        self._notes = Notes(self._reader, options, partition_eof=settings.partition_eof)

    # Reading.

    def poll(self, timeout: float = -1) -> Message[Any, Any] | None:
        """Return the next message or error; None if there is none in time."""
        messages = self._read(1, timeout, self._take_one)
        return messages[0] if messages else None

    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message[Any, Any]]:
        """Return so many messages, or as many as arrive in time."""
        if not 0 <= num_messages <= _BATCH_MAX:
            raise ValueError(f"num_messages must be between 0 and {_BATCH_MAX}")
        return self._read(num_messages, timeout, self._take)

    def _read(self, count: int, timeout: float, take: Take) -> list[Message[Any, Any]]:
        """Return messages; wait in slices, so that errors and other threads get their turn."""
        limit_s = seconds(timeout)
        deadline_s = inf if limit_s is None else time.monotonic() + limit_s
        slice_s = _SLICE_WITH_EOF_S if self._settings.partition_eof else _SLICE_S
        messages: list[Message[Any, Any]] = []
        wait_s = 0.0
        while len(messages) < count:
            try:
                found = self._look(take, wait_s * 1000, count - len(messages))
            except Exception as failure:  # a callback's: the next call raises it, none is lost
                if not messages:
                    raise
                self._events.add(partial(_raise, failure))
                return messages
            messages += found
            wait_s = max(0.0, min(slice_s, deadline_s - time.monotonic()))
            if not wait_s and not found:
                break
        return messages

    def _look(self, take: Take, wait_ms: float, count: int) -> list[Message[Any, Any]]:
        """Run queued callbacks, then return messages, or an error in their place."""
        with self._lock:
            self._check_open()
            self._events.serve()
            self._commit_if_due()
            exceeded = self._notes.exceeded()
            if exceeded is not None:
                return [exceeded]
            try:
                messages = take(wait_ms, count)
            except BarnabasError as failure:
                error = self._notes.failed(failure)
                if error is None:  # a failure that stays, and was reported
                    self._events.wait(wait_ms / 1000)
                return [] if error is None else [error]
            if not messages:
                self._events.serve()
                note = self._notes.next()
                return [] if note is None else [note]
            return messages

    def _take_one(self, wait_ms: float, count: int) -> list[Message[Any, Any]]:
        record = self._reader.take_one(wait_ms)
        if record is None:
            return []
        self._stored.handed_out(record)
        return [consumed(record)]

    def _take(self, wait_ms: float, count: int) -> list[Message[Any, Any]]:
        messages: list[Message[Any, Any]] = []
        for records in self._reader.poll(wait_ms, count).values():
            self._stored.handed_out(records[-1])
            messages += map(consumed, records)
        return messages

    # Subscriptions and assignments.

    def subscribe(
        self,
        topics: list[str],
        on_assign: RebalanceCallback | None = None,
        on_revoke: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Subscribe to topics; a name that begins with ^ is a pattern."""
        if not isinstance(topics, list):
            raise TypeError("expected list of topic unicode strings")
        if not all(isinstance(topic, str) for topic in topics):
            raise TypeError("expected list of topic unicode strings")
        functions = {"on_assign": on_assign, "on_revoke": on_revoke, "on_lost": on_lost}
        for name, function in functions.items():
            if function is not None and not callable(function):
                raise TypeError(f"{name} expects a callable")
        listener = Rebalancing(self, **functions)
        with self._lock:
            self._check_open()
            if not topics:
                raise _failed(KafkaError._INVALID_ARG, "Failed to set subscription")
            patterns = [topic for topic in topics if topic.startswith("^")]
            if self._reader.mode not in (Mode.NONE, Mode.PATTERN if patterns else Mode.TOPICS):
                self.unsubscribe()
            if not patterns:
                self._guard(lambda: self._reader.subscribe(topics, listener=listener))
                return
            names = [re.escape(topic) + "$" for topic in topics if not topic.startswith("^")]
            pattern = "|".join(f"(?:{each})" for each in (*patterns, *names))
            if self._settings.blocked_topics:
                pattern = f"(?!{'|'.join(self._settings.blocked_topics)})(?:{pattern})"
            self._guard(lambda: self._reader.subscribe(pattern=pattern, listener=listener))

    def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        with self._lock:
            self._check_open()
            listener = self._reader._subscription.listener
            owned = self._reader.assignment()
            if listener is not None and owned:
                listener.on_partitions_revoked(owned)
            self._guard(self._reader.unsubscribe)

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions, from their offsets; in `on_assign`, say from where."""
        wanted = listed(partitions)
        with self._lock:
            self._check_open()
            if self._reader.by_group:
                self._begin_at(wanted)
                left_out = self._reader.assignment() - {each.key for each in wanted}
                self._reader.pause(*left_out)
                return
            self._guard(lambda: self._reader.assign([each.key for each in wanted]))
            self._begin_at(wanted)

    def unassign(self) -> None:
        """Read nothing."""
        with self._lock:
            self._check_open()
            if self._in_rebalance:
                return  # the group revokes what it revokes
            if self._reader.by_group:
                self._reader.pause(*self._reader.assignment())
            else:
                self._guard(self._reader.unsubscribe)

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions, too."""
        wanted = listed(partitions)
        with self._lock:
            self._check_open()
            if not self._reader.by_group:
                owned = self._reader.assignment()
                for each in wanted:
                    if each.key in owned:
                        raise _failed(KafkaError._CONFLICT, f"{each.key} is assigned already")
                self._guard(lambda: self._reader.assign([*owned, *(each.key for each in wanted)]))
            self._begin_at(wanted)

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions no longer."""
        unwanted = {each.key for each in listed(partitions)}
        with self._lock:
            self._check_open()
            if self._in_rebalance:
                return
            owned = self._reader.assignment()
            if not unwanted <= owned:
                strange = sorted(unwanted - owned)[0]
                raise _failed(KafkaError._INVALID_ARG, f"{strange} is not assigned")
            if self._reader.by_group:
                self._reader.pause(*unwanted)
            else:
                self._guard(lambda: self._reader.assign(sorted(owned - unwanted)))

    def assignment(self) -> list[TopicPartition]:
        """Return the assigned partitions."""
        with self._lock:
            self._check_open()
            return [from_key(each) for each in sorted(self._reader.assignment())]

    def _begin_at(self, partitions: Iterable[TopicPartition]) -> None:
        for each in partitions:
            if self._reader.state(each.key) is None:
                continue
            self._stored.forget([each.key])
            self._go_to(each)

    def _go_to(self, partition: TopicPartition) -> None:
        key, offset = partition.key, partition.offset
        if offset == OFFSET_BEGINNING:
            self._reader.restart(key, ResetPolicy.EARLIEST)
        elif offset == OFFSET_END:
            self._reader.restart(key, ResetPolicy.LATEST)
        elif offset >= 0:
            self._guard(lambda: self._reader.seek(key, to_commit(partition)))

    @contextmanager
    def _rebalance(self) -> Iterator[None]:
        """Mark that a function of the program is called within a rebalance."""
        self._in_rebalance += 1
        try:
            yield
        finally:
            self._in_rebalance -= 1

    def _given_up(self, partitions: set[ids.TopicPartition], *, commit: bool) -> None:
        """Commit and forget the stored offsets of partitions that are revoked."""
        if commit and self._settings.commits_stored:
            with suppress(KafkaException):  # the group goes on without it
                self._commit(self._stored.to_commit(partitions), asynchronous=False)
        self._stored.forget(partitions)

    # Positions.

    def seek(self, partition: TopicPartition) -> None:
        """Continue from the partition's offset."""
        (wanted,) = listed([partition])
        with self._lock:
            self._check_open()
            if self._reader.state(wanted.key) is None:
                what = f"Failed to seek to offset {wanted.offset}"
                raise _failed(KafkaError._UNKNOWN_PARTITION, what)
            self._stored.forget([wanted.key])
            self._go_to(wanted)

    def pause(self, partitions: list[TopicPartition]) -> None:
        """Stop reading these partitions until `resume`."""
        with self._lock:
            self._check_open()
            self._reader.pause(*self._owned(partitions))

    def resume(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions again."""
        with self._lock:
            self._check_open()
            self._reader.resume(*self._owned(partitions))

    def _owned(self, partitions: list[TopicPartition]) -> list[ids.TopicPartition]:
        """Return the assigned ones; the others are ignored."""
        return [each.key for each in listed(partitions) if self._reader.state(each.key)]

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return partitions with the offset after the last message that was returned."""
        with self._lock:
            self._check_open()
            return [
                from_commit(each.key, self._stored.position(each.key))
                for each in listed(partitions)
            ]

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]:
        """Return the first offset, and the one after the last; `cached`: as far as known."""
        key = listed([partition])[0].key
        with self._lock:
            self._check_open()
            if cached:
                state = self._reader.state(key)
                low = None if state is None else state.log_start_offset
                high = None if state is None else state.high_watermark
                return (
                    OFFSET_INVALID if low is None else low,
                    OFFSET_INVALID if high is None else high,
                )
            limit_ms = _milliseconds(timeout)

            def ask() -> tuple[int, int]:
                self._check_exists(key, "Failed to get watermark offsets")
                low = self._reader.beginning_offsets([key], limit_ms)[key]
                return low, self._reader.end_offsets([key], limit_ms)[key]

            offsets: tuple[int, int] = self._guard(ask)
            return offsets

    def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """Return the first offsets at or after the times that stand in place of offsets."""
        wanted = listed(partitions)
        with self._lock:
            self._check_open()
            asked = {each.key: each.offset for each in wanted}
            for key in asked:
                self._check_exists(key, "Failed to get offsets")
            found = self._guard(
                lambda: self._reader.offsets_for_times(asked, _milliseconds(timeout))
            )
        return [
            from_key(each.key, OFFSET_END if found[each.key] is None else found[each.key].offset)
            for each in wanted
        ]

    def _check_exists(self, partition: ids.TopicPartition, what: str) -> None:
        known = self._guard(lambda: self._reader.partitions_for_topic(partition.topic))
        if partition.partition not in known:
            raise _failed(KafkaError._UNKNOWN_PARTITION, f"{what} of {partition}")

    # Commits.

    def commit(
        self,
        message: Message[Any, Any] | None = None,
        offsets: list[TopicPartition] | None = None,
        asynchronous: bool = True,
    ) -> list[TopicPartition] | None:
        """Commit stored offsets, those given, or the one after a message."""
        if message is not None and offsets is not None:
            raise ValueError("message and offsets are mutually exclusive")
        with self._lock:
            self._check_open()
            if message is not None:
                wanted = _after(message)
            elif offsets is not None:
                wanted = {each.key: to_commit(each) for each in listed(offsets) if each.offset >= 0}
            else:
                wanted = self._stored.to_commit()
            if not wanted and not asynchronous:
                raise _failed(KafkaError._NO_OFFSET, "Commit failed")
            return self._commit(wanted, asynchronous=asynchronous)

    def _commit(
        self, wanted: dict[ids.TopicPartition, OffsetAndMetadata], *, asynchronous: bool
    ) -> list[TopicPartition] | None:
        if not wanted:
            return None if asynchronous else []
        if asynchronous:
            self._guard(lambda: self._reader.commit_async(wanted))
            self._stored.committed(wanted)
            return None
        self._guard(lambda: self._reader.commit(wanted))
        self._stored.committed(wanted)
        return [from_commit(key, offset) for key, offset in wanted.items()]

    def _committed(self, offsets: Any, failure: Exception | None) -> None:
        """Tell the program of a commit that it did not wait for."""
        function = self._settings.on_commit
        assert function is not None
        error = None if failure is None else error_of(failure)
        partitions = [with_error(from_commit(*each), error) for each in offsets.items()]
        self._events.add(lambda: function(error, partitions))

    def _commit_if_due(self) -> None:
        """Commit stored offsets from time to time, if that is wanted."""
        if self._settings.commits_stored and time.monotonic() >= self._commit_due_s:
            pause_s = self._options.auto_commit_interval_ms / 1000
            self._commit_due_s = time.monotonic() + pause_s
            with suppress(KafkaException):  # the next one includes it
                self._commit(self._stored.to_commit(), asynchronous=True)

    def store_offsets(
        self,
        message: Message[Any, Any] | None = None,
        offsets: list[TopicPartition] | None = None,
    ) -> None:
        """Store offsets for the next commit; needs enable.auto.offset.store=false."""
        if (message is None) == (offsets is None):
            raise ValueError("expected message or offsets, and not both")
        with self._lock:
            self._check_open()
            if self._settings.auto_offset_store:
                what = "StoreOffsets failed, since enable.auto.offset.store is true"
                raise _failed(KafkaError._INVALID_ARG, what)
            wanted = (
                _after(message)
                if message is not None
                else {each.key: to_commit(each) for each in listed(offsets)}
            )
            strangers = [key for key in wanted if self._reader.state(key) is None]
            if strangers:
                what = f"StoreOffsets failed, since {strangers[0]} is not assigned"
                raise _failed(KafkaError._STATE, what)
            self._stored.store(wanted)

    def committed(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """Return partitions with the offsets that the group has committed."""
        keys = [each.key for each in listed(partitions)]
        with self._lock:
            self._check_open()
            found = self._guard(lambda: self._reader.committed_of(keys, _milliseconds(timeout)))
        return [from_commit(key, found.get(key)) for key in keys]

    # The group, the cluster, and this consumer itself.

    def consumer_group_metadata(self) -> ConsumerGroupMetadata:
        """Return what a transactional producer presents for this consumer."""
        with self._lock:
            self._check_open()
            return self._reader.group_metadata()

    def memberid(self) -> str | None:
        """Return the id of this member; None before it has joined."""
        with self._lock:
            self._check_open()
            return self._reader.group_metadata().member_id or None

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return the cluster's metadata: of one topic, or all."""
        with self._lock:
            self._check_open()
            return cluster_view(self._reader, self._reader.client, topic, timeout)

    def cluster_id(self, timeout: float = -1) -> str:
        """Return the id of the cluster."""
        with self._lock:
            self._check_open()
            return cluster_id(self._reader, self._reader.client, timeout)

    def set_sasl_credentials(self, username: str, password: str) -> None:
        """Log in with these from the next connection on."""
        self._check_open()
        use_password(self._reader.client, self._options, username, password)

    def close(self) -> None:
        """Commit what is to be committed, leave the group and disconnect."""
        with self._lock:
            if self._closed:
                return
            try:
                if self._settings.commits_stored:
                    with suppress(KafkaException):  # closing goes on without it
                        self._commit(self._stored.to_commit(), asynchronous=False)
                self._guard(self._reader.close)
                self._events.serve()
            finally:
                self._closed = True

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        exc_traceback: TracebackType | None,
    ) -> bool | None:
        self.close()
        return None

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Consumer closed")

    def _guard(self, function: Callable[[], Any]) -> Any:
        return self._reader.guard(function)


def _after(message: Message[Any, Any]) -> dict[ids.TopicPartition, OffsetAndMetadata]:
    error = message.error()
    if error is not None:
        raise KafkaException(error)
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    epoch = message.leader_epoch()
    committed = OffsetAndMetadata(offset + 1, "", -1 if epoch is None else epoch)
    return {ids.TopicPartition(topic, partition): committed}


def _raise(failure: Exception) -> None:
    raise failure


def _failed(code: int, what: str) -> KafkaException:
    return KafkaException(KafkaError(code, f"{what}: {text_of(code)}"))


def _milliseconds(timeout: float) -> float | None:
    limit_s = seconds(timeout)
    return None if limit_s is None else limit_s * 1000
