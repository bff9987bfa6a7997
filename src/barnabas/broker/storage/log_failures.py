"""A disk that fails takes its own partitions offline, not the broker.

A log directory whose disk fails (EIO, removed, read-only) is offline from then on: its partitions
answer KAFKA_STORAGE_ERROR, the others are served, and a node in the coordination tree notifies the
controller. The broker stops when all directories have failed, or the one with the embedded
coordination file, without which it knows no topics.

A full disk is not a failed disk: appends fail, reads continue, and writes succeed again when there
is room. But a leader without room blocks in-sync replicas that could lead: it notifies the
controller as if the disk had failed, for the partitions that it could not write. The controller
elects another leader and stops the replica here; after a while it is offered again, and follows as
any follower with a full disk does: it retries, and continues when there is room.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.coordination.contract import Coordination
from barnabas.diary import subjects
from barnabas.metadata import tree_schema as nodes
from barnabas.model.errors import BarnabasError, StorageError
from barnabas.model.ids import TopicPartition
from barnabas.model.note import Note, NoteSink, unnoted
from barnabas.replication.partition import Partition

if TYPE_CHECKING:
    from barnabas.broker.storage.logs import Logs

logger = logging.getLogger("barnabas.logs")

PASSING = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EAGAIN,
        errno.EINTR,
    }
)
"""Errors that do not mean a failed disk: no room, no descriptor, no memory, held by another."""


NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})

NOTICE_MS = 5000
"""The minimum interval between notices of a full disk to the controller."""

RETURN_S = 10.0
"""When a replica that gave up its leadership is offered again."""


def directory_is_lost(failure: StorageError) -> bool:
    """Return whether an error means that the directory's disk has failed."""
    cause = failure.__cause__
    return isinstance(cause, OSError) and cause.errno not in PASSING


def disk_is_full(failure: StorageError) -> bool:
    """Return whether an error means that the disk is full."""
    cause = failure.__cause__
    return isinstance(cause, OSError) and cause.errno in NO_ROOM


class LogFailures:
    """Takes directories offline as they fail."""

    def __init__(
        self,
        logs: Logs,
        partitions: Mapping[tuple[str, int], Partition],
        tree: Coordination,
        broker_id: int,
        clock_ms: Callable[[], int],
        *,
        vital_path: str | None,
        cancel_moves_to: Callable[[str], None],
        drop: Callable[[TopicPartition], None],
        give_up: Callable[[str], Coroutine[Any, Any, None]],
        note: NoteSink = unnoted,
    ) -> None:
        """Handle the disk errors of a broker, which stops without the directory at `vital_path`."""
        self._logs = logs
        self._partitions = partitions
        self._tree = tree
        self._broker_id = broker_id
        self._clock_ms = clock_ms
        self._vital_path = vital_path
        self._cancel_moves_to = cancel_moves_to
        self._drop = drop
        self._give_up = give_up
        self._note = note
        self._tasks: set[asyncio.Task[None]] = set()
        self._resigned: dict[TopicPartition, int] = {}
        """Partitions that another broker should lead, with the epoch in which they were full."""
        self._notified_ms = -NOTICE_MS
        self._return: asyncio.TimerHandle | None = None

    def of_partition(self, key: tuple[str, int], failure: StorageError) -> None:
        """Handle a disk error of a partition's log."""
        if disk_is_full(failure):
            self._resign(TopicPartition(*key))
        path = self._logs.path_of(TopicPartition(*key))
        if path is not None:
            self.of_directory(path, failure)

    def _resign(self, key: TopicPartition) -> None:
        """Give up the leadership of a partition on a full disk, if another replica is in sync."""
        partition = self._partitions.get(key)
        if partition is None or not partition.is_leader or len(partition.isr) < 2:
            return
        if key not in self._resigned:
            data = {
                "partition": subjects.partition(*key),
                "directory": self._logs.path_of(key) or "",
                "leader_epoch": partition.leader_epoch,
            }
            self._note(Note("directory.full", subjects.broker(self._broker_id), "no-room", data))
        self._resigned[key] = partition.leader_epoch
        now_ms = self._clock_ms()
        if now_ms - self._notified_ms >= NOTICE_MS:
            self._notified_ms = now_ms
            self._spawn(self.notify())

    def resigns(self, partition: Partition) -> bool:
        """Return whether another broker should lead a partition, when the controller asks."""
        epoch = self._resigned.pop(partition.topic_partition, None)
        if epoch != partition.leader_epoch or not partition.is_leader:
            return False
        if self._return is None:
            self._return = asyncio.get_running_loop().call_later(RETURN_S, self._offer_again)
        return True

    def _offer_again(self) -> None:
        self._return = None
        self._spawn(self.notify())

    def of_directory(self, path: str, failure: StorageError) -> None:
        """Handle a disk error in a directory: take it offline if the disk has failed."""
        if not directory_is_lost(failure) or path in self._logs.offline:
            return
        self._cancel_moves_to(path)
        held = self._logs.take_offline(path, failure)
        logger.error("log directory %s is offline: partitions=%d: %s", path, len(held), failure)
        data = {"directory": path, "partitions": len(held), "reason": str(failure)}
        subject = subjects.broker(self._broker_id)
        self._note(Note("directory.offline", subject, "disk-error", data))
        for key in held:
            self._drop(key)
        if not self._logs.paths:
            self._spawn(self._give_up("all log directories have failed"))
        elif path == self._vital_path:
            self._spawn(
                self._give_up(f"log directory {path}, with the coordination file, has failed")
            )
        else:
            self._spawn(self.notify())

    async def notify(self) -> None:
        """Notify the controller that a directory of this broker has failed."""
        try:
            await self._tree.create(
                f"{nodes.LOG_DIR_EVENTS}/log_dir_event_",
                nodes.encode_log_dir_event(self._broker_id),
                sequence=True,
            )
        except BarnabasError as failure:
            logger.error(
                "controller not notified of a failed or full log directory: broker=%d: %s",
                self._broker_id,
                failure,
            )

    def stop(self) -> None:
        """Offer no more replicas."""
        if self._return is not None:
            self._return.cancel()
            self._return = None

    async def drain(self) -> None:
        """Wait for the tasks in progress, and start no more."""
        self.stop()
        while self._tasks - {asyncio.current_task()}:
            await asyncio.wait(self._tasks - {asyncio.current_task()})

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
