"""Forks: topics that start as a copy of another one.

Requested by CreateTopics with configs that are not stored:

    barnabas.fork.source=TOPIC             fork this topic: its partitions, options and records
    barnabas.fork.offsets=0:1500,2:90      end before these offsets, partition by partition
    barnabas.fork.at=1767225600000         end before the first record of this time or later

Without an end, a partition is forked up to its last stable offset, without open transactions. With
one, the fork ends after the last whole batch below it, and transactions that are open there are
aborted in the fork. Its leader epochs continue the source's, and its producers are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from barnabas.broker.coordinators.marker_writer import Done, Ending
from barnabas.broker.loop import offload
from barnabas.log.fork import Fork
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError, StorageError
from barnabas.model.ids import TopicPartition, new_uuid

if TYPE_CHECKING:
    from barnabas.broker.storage.logs import Logs
    from barnabas.config.topic import TopicOptions
    from barnabas.metadata.cluster_view import ClusterView
    from barnabas.metadata.topic_store import NewTopic
    from barnabas.replication.partition import Partition

WriteMarkers = Callable[[Ending, Iterable[TopicPartition], Done], None]

SOURCE, OFFSETS, AT = "barnabas.fork.source", "barnabas.fork.offsets", "barnabas.fork.at"


@dataclass(frozen=True, slots=True)
class ForkOf:
    """What a topic is to be forked from."""

    source: str
    offsets: Mapping[int, int]
    at_ms: int | None


def take_fork(configs: dict[str, str]) -> ForkOf | None:
    """Remove the configs that request a fork from a topic's configs, and return the fork."""
    source, offsets, at = (configs.pop(name, None) for name in (SOURCE, OFFSETS, AT))
    if source is None:
        if offsets is not None or at is not None:
            raise RequestError(ErrorCode.INVALID_CONFIG, f"{SOURCE} must be set for a fork")
        return None
    if offsets is not None and at is not None:
        raise RequestError(ErrorCode.INVALID_CONFIG, f"{OFFSETS} and {AT} exclude each other")
    try:
        pairs = [pair.split(":") for pair in (offsets or "").split(",") if pair]
        ends = {int(partition): int(offset) for partition, offset in pairs}
        return ForkOf(source, ends, None if at is None else int(at))
    except ValueError:
        raise RequestError(
            ErrorCode.INVALID_CONFIG,
            f"{OFFSETS} must be PARTITION:OFFSET,... and {AT} milliseconds since 1970",
        ) from None


class Forks:
    """Creates forks, and removes those that a crash interrupted."""

    def __init__(
        self,
        logs: Logs,
        partitions: Mapping[tuple[str, int], Partition],
        cluster: ClusterView,
        executor: Executor | None,
        now_ms: Callable[[], int],
        random_bytes: Callable[[int], bytes],
        *,
        topic_options: Callable[[Mapping[str, str]], TopicOptions],
        absent: Callable[[str, int], RequestError],
        write_markers: WriteMarkers,
    ) -> None:
        """Use `absent` for the error of a partition that is not hosted here."""
        self._logs = logs
        self._partitions = partitions
        self._cluster = cluster
        self._executor = executor
        self._now_ms = now_ms
        self._random_bytes = random_bytes
        self._topic_options = topic_options
        self._absent = absent
        self._write_markers = write_markers

    def check(self, fork: ForkOf, partitions: int) -> list[Partition]:
        """Return the partitions to fork; raise if they cannot be. -1 means as many as it has."""
        view = self._cluster.topic(fork.source)
        if view is None:
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {fork.source!r} does not exist"
            )
        if partitions not in (-1, len(view.partitions)):
            raise RequestError(
                ErrorCode.INVALID_PARTITIONS,
                f"a fork of {fork.source!r} must have {len(view.partitions)} partitions",
            )
        if any(len(each.replicas) > 1 for each in view.partitions):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"topic {fork.source!r} is replicated: only topics with one replica can be forked",
            )
        found = []
        for number in range(len(view.partitions)):
            leader = view.partitions[number].leader
            partition = self._partitions.get((fork.source, number))
            if partition is None or not partition.is_leader:
                if leader >= 0:
                    raise RequestError(
                        ErrorCode.NOT_LEADER_OR_FOLLOWER,
                        f"partition {fork.source}-{number} is led by broker {leader}, not by the "
                        "controller: only the controller can fork, and only topics that it leads",
                    )
                raise self._absent(fork.source, number)
            found.append(partition)
        for number, offset in fork.offsets.items():
            if not 0 <= number < len(found):
                raise RequestError(
                    ErrorCode.INVALID_CONFIG, f"topic {fork.source!r} has no partition {number}"
                )
            log = found[number].log
            if not log.log_start_offset <= offset <= log.high_watermark:
                raise RequestError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"offset {offset} of partition {number}: must be from "
                    f"{log.log_start_offset} to {log.high_watermark}",
                )
        return found

    async def prepare(self, topic: NewTopic, fork: ForkOf) -> NewTopic:
        """Create the logs of a topic that does not exist yet; return it completed."""
        partitions = self.check(fork, topic.partitions)
        topic_id = new_uuid(self._random_bytes)
        epochs = {}
        options = self._topic_options(topic.configs)
        try:
            for number, partition in enumerate(partitions):
                key = TopicPartition(topic.name, number)
                self._logs.delete(key, 0)  # of a topic that had this name before
                made = self._logs.fork(key, partition.log, topic_id, _end(partition, fork))
                await self._make(made, options)
                epochs[number] = max(partition.leader_epoch, partition.log.leader_epochs.latest) + 1
            await self._logs.write_checkpoints()
        except StorageError as failure:
            self.undo(topic)
            raise RequestError(ErrorCode.KAFKA_STORAGE_ERROR, str(failure)) from failure
        # Where the logs are, and nowhere else: a replica on another broker would be empty.
        held = {number: partition.replicas for number, partition in enumerate(partitions)}
        return replace(topic, topic_id=topic_id, leader_epochs=epochs, assignment=held)

    async def _make(self, fork: Fork, options: TopicOptions) -> None:
        now_ms = self._now_ms()
        try:
            try:
                fork.link(now_ms)
                await offload(self._executor, fork.copy, options, now_ms)
            finally:
                fork.release()
            fork.settle()
        except BaseException:
            self._logs.remove_later(fork.abandon(), 0)
            raise

    def undo(self, topic: NewTopic) -> None:
        """Remove the logs of a topic that was not created."""
        for number in range(topic.partitions):
            self._logs.delete(TopicPartition(topic.name, number), 0)

    def created(self, topic: NewTopic) -> None:
        """Confirm the logs of a topic that now exists, and abort its open transactions."""
        for number in range(topic.partitions):
            partition = self._partitions.get((topic.name, number))
            if partition is None:
                continue
            self._logs.confirm_fork(partition.topic_partition)
            for entry in list(partition.log.producers):
                if entry.transaction_first_offset >= 0:
                    ending = Ending(
                        entry.producer_id, entry.epoch, False, max(entry.coordinator_epoch, 0)
                    )
                    self._write_markers(ending, [partition.topic_partition], lambda _: None)


def _end(partition: Partition, fork: ForkOf) -> int:
    log = partition.log
    number = partition.topic_partition.partition
    if number in fork.offsets:
        return fork.offsets[number]
    if fork.at_ms is not None:
        found = log.find_timestamp(fork.at_ms)
        if found is not None:
            return min(found.offset, log.high_watermark)
    return log.last_stable_offset
