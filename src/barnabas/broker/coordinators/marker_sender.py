"""Transaction markers for partitions that other brokers lead: requested over the network.

An unknown partition needs no marker if its topic was deleted, but a broker that is new in its role
may only not know it yet. The coordination tree knows the difference.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import Any

from barnabas.broker.coordinators.collaborators import Collaborators
from barnabas.broker.coordinators.marker_writer import Done, Ending, MarkerWriter
from barnabas.coordination.contract import CoordinationError
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

logger = logging.getLogger("barnabas.transactions")


class MarkerSender:
    """Has markers written by the leader of each partition."""

    def __init__(self, collaborators: Collaborators, writer: MarkerWriter) -> None:
        self._broker_id = collaborators.broker_id
        self._options = collaborators.options
        self._cluster = collaborators.cluster
        self._topic_is_gone = collaborators.topic_is_gone
        self._ask = collaborators.ask
        self._writer = writer
        self._tasks: set[asyncio.Task[None]] = set()

    def write(self, ending: Ending, partitions: Iterable[TopicPartition], done: Done) -> None:
        """Have markers written; `done` is called for each leader's share by itself.

        UNKNOWN_TOPIC_OR_PARTITION then means that the topic was deleted.
        """
        done = partial(self._check_deleted, done)
        by_leader: dict[int, list[TopicPartition]] = {}
        nowhere: dict[TopicPartition, ErrorCode] = {}
        for key in partitions:
            topic = self._cluster.topic(key.topic)
            if topic is None or key.partition >= len(topic.partitions):
                nowhere[key] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            leader = topic.partitions[key.partition].leader
            if leader < 0:
                nowhere[key] = ErrorCode.LEADER_NOT_AVAILABLE
            else:
                by_leader.setdefault(leader, []).append(key)
        own = by_leader.pop(self._broker_id, [])
        if nowhere:
            done(nowhere)
        if own:
            self._writer.write(ending, own, done)
        for leader, keys in by_leader.items():
            self._spawn(self._ask_leader(leader, ending, keys, done))

    def _check_deleted(self, done: Done, errors: dict[TopicPartition, ErrorCode]) -> None:
        if ErrorCode.UNKNOWN_TOPIC_OR_PARTITION in errors.values():
            self._spawn(self._look_up_unknown(done, errors))
        else:
            done(errors)

    async def _look_up_unknown(self, done: Done, errors: dict[TopicPartition, ErrorCode]) -> None:
        for key, code in errors.items():
            if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue
            try:
                gone = await self._topic_is_gone(key.topic)
            except CoordinationError as failure:
                logger.info(
                    "topic %s: could not read whether it was deleted, retrying: %s",
                    key.topic,
                    failure,
                )
                gone = False
            if not gone:
                errors[key] = ErrorCode.LEADER_NOT_AVAILABLE
        done(errors)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Cancel the requests in progress."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _ask_leader(
        self, leader: int, ending: Ending, keys: list[TopicPartition], done: Done
    ) -> None:
        topics: dict[str, WritableTxnMarkerTopic] = {}
        for key in keys:
            topic = topics.setdefault(key.topic, WritableTxnMarkerTopic(name=key.topic))
            topic.partition_indexes.append(key.partition)
        marker = WritableTxnMarker(
            producer_id=ending.producer_id,
            producer_epoch=ending.producer_epoch,
            transaction_result=ending.committed,
            topics=list(topics.values()),
            coordinator_epoch=ending.coordinator_epoch,
        )
        errors = dict.fromkeys(keys, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        try:
            response: WriteTxnMarkersResponse = await self._ask(
                leader,
                WriteTxnMarkersRequest(markers=[marker]),
                self._options().request_timeout_ms,
            )
        except BarnabasError as failure:
            logger.info(
                "txn markers not sent, retrying: broker=%d producer_id=%d partitions=%d: %s",
                leader,
                ending.producer_id,
                len(keys),
                failure,
            )
        else:
            for result in response.markers:
                for answered in result.topics:
                    for each in answered.partitions:
                        key = TopicPartition(answered.name, each.partition_index)
                        errors[key] = ErrorCode.of(each.error_code)
        done(errors)
