"""A disk that fails takes its own partitions offline, not the broker.

A log directory whose disk answers with an error (EIO, gone, read-only) is left alone from then on:
its partitions answer KAFKA_STORAGE_ERROR, the others are served, and a node in the coordination
tree tells the controller. A full disk is no failed disk: the append is refused, reads go on, and
writes succeed again when there is room. The broker ends when no directory is left, or when the one
is lost that holds the embedded coordination file, without which it knows no topics.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from barnabas.controller import nodes
from barnabas.model.errors import BarnabasError, StorageError
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

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
"""Refusals that say nothing about the disk: no room, no descriptor, no memory, held by another."""


def directory_is_lost(failure: StorageError) -> bool:
    """Tell whether a refusal means that the directory's disk cannot be trusted any more."""
    cause = failure.__cause__
    return isinstance(cause, OSError) and cause.errno not in PASSING


class LogFailures:
    """Takes directories out of use as they fail."""

    def __init__(self, broker: Broker, vital_path: str | None) -> None:
        """Watch over a broker; it cannot go on without the directory at `vital_path`."""
        self._broker = broker
        self._vital_path = vital_path
        self._tasks: set[asyncio.Task[None]] = set()

    def of_partition(self, key: tuple[str, int], failure: StorageError) -> None:
        """The disk refused something about a partition's log."""
        path = self._broker.logs.path_of(TopicPartition(*key))
        if path is not None:
            self.of_directory(path, failure)

    def of_directory(self, path: str, failure: StorageError) -> None:
        """The disk refused something in a directory: take it offline if that is the disk's end."""
        broker = self._broker
        if not directory_is_lost(failure) or path in broker.logs.offline:
            return
        broker.relocations.cancel_to(path)
        held = broker.logs.take_offline(path, failure)
        logger.error("%s is offline with %d partitions: %s", path, len(held), failure)
        for key in held:
            broker.drop_partition(key)
        if not broker.logs.paths:
            self._spawn(broker.give_up("no log directory is left"))
        elif path == self._vital_path:
            self._spawn(broker.give_up(f"{path} is lost, which holds the coordination file"))
        else:
            self._spawn(self.notify())

    async def notify(self) -> None:
        """Tell the controller that a directory of this broker failed."""
        try:
            await self._broker.tree.create(
                f"{nodes.LOG_DIR_EVENTS}/log_dir_event_",
                nodes.encode_log_dir_event(self._broker.broker_id),
                sequence=True,
            )
        except BarnabasError as failure:
            logger.error("the controller could not be told of a failed directory: %s", failure)

    async def drain(self) -> None:
        """Wait for what is under way."""
        while self._tasks - {asyncio.current_task()}:
            await asyncio.wait(self._tasks - {asyncio.current_task()})

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
