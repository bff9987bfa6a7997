"""Brokers from a script for one topic `t` with one partition: leaders, epochs and answers as told.

They live in a simulated world: `simulate` runs a coroutine there, so no time is spent on waiting.

`answer` may replace the answer to a fetch: it gets node, request and version, and returns an answer
or `NotImplemented` for the usual one. At the end of the log a broker is silent, as one that waits.
Fetches that end a session are not asked about: `ended` lists them, and `deaf` leaves them without
an answer. `forgetful` brokers do not mention the partition when they are asked for offsets. `more`
adds answers to other requests.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any, TypeVar

from tests.network.scripted_broker import Answer, Script, ScriptedBroker

from barnabas.client.addresses import Address
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.simulation.network import DRIVER
from barnabas.simulation.world import World
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from barnabas.wire.schema import Message

Result = TypeVar("Result")

P = TopicPartition("t", 0)
ID = b"0123456789abcdef"


class Scripted:
    """Some brokers that tell one story."""

    def __init__(
        self,
        nodes: int = 1,
        versions: dict[type[Message], tuple[int, int]] | None = None,
        more: Script | None = None,
    ) -> None:
        self.leader, self.epoch = 0, 0
        self.log: list[bytes] = []  # batches of one record each, at the offset of its index
        self.start = 0
        self.session_id = 77
        self.topic_error = ErrorCode.NONE
        self.epoch_end: tuple[int, int] = (-1, -1)
        self.answer: Callable[[int, FetchRequest, int], Any] = lambda *_: NotImplemented
        self.fetches: list[tuple[int, int, FetchRequest]] = []
        self.ended: list[tuple[int, FetchRequest]] = []
        self.deaf = False
        self.forgetful = False
        self._wanted: dict[int, FetchPartition] = {}  # what the session of each broker has in mind
        self._stack = AsyncExitStack()
        self.brokers = [
            ScriptedBroker(
                {
                    MetadataRequest: self._metadata,
                    ListOffsetsRequest: self._list_offsets,
                    OffsetForLeaderEpochRequest: self._epoch_ends,
                    FetchRequest: lambda request, version, n=n: self._fetch(n, request, version),  # type: ignore[misc]
                    **(more or {}),
                },
                versions,
                Address(DRIVER, 9092 + n),
            )
            for n in range(nodes)
        ]

    @property
    def bootstrap(self) -> str:
        return ",".join(str(broker.address) for broker in self.brokers)

    async def __aenter__(self) -> Scripted:
        for broker in self.brokers:
            await self._stack.enter_async_context(broker)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def append(self, count: int, **options: Any) -> None:
        """Add records whose values are their offsets."""
        for offset in range(len(self.log), len(self.log) + count):
            row = (1_700_000_000_000 + offset, None, b"%d" % offset)
            batch = build_batch([row], base_offset=offset, leader_epoch=self.epoch, **options)
            self.log.append(bytes(batch))

    def data(self, **fields: Any) -> FetchResponse:
        """Return the answer about the one partition."""
        fields = {
            "partition_index": 0,
            "high_watermark": len(self.log),
            "last_stable_offset": len(self.log),
            "log_start_offset": self.start,
            **fields,
        }
        topic = FetchableTopicResponse(topic="t", topic_id=ID, partitions=[PartitionData(**fields)])
        return FetchResponse(session_id=self.session_id, responses=[topic])

    def refusal(self, code: ErrorCode, **fields: Any) -> FetchResponse:
        """Return the answer that refuses the one partition."""
        return self.data(error_code=code, records=b"", **fields)

    def _fetch(self, node: int, request: FetchRequest, version: int) -> Answer:
        if request.session_id and request.session_epoch == -1:
            self.ended.append((node, request))
            return None if self.deaf else FetchResponse()
        self.fetches.append((node, version, request))
        if request.topics:
            self._wanted[node] = request.topics[0].partitions[0]
        answer = self.answer(node, request, version)
        if answer is not NotImplemented:
            return answer  # type: ignore[no-any-return]
        wanted = self._wanted[node]
        offset = wanted.fetch_offset
        if node != self.leader:
            return self.refusal(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if -1 < wanted.current_leader_epoch < self.epoch:
            return self.refusal(ErrorCode.FENCED_LEADER_EPOCH)
        if not self.start <= offset <= len(self.log):
            return self.refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
        if offset == len(self.log):
            return None
        return self.data(records=b"".join(self.log[offset : offset + 3]))

    def _metadata(self, request: MetadataRequest, version: int) -> Answer:
        brokers = [
            MetadataResponseBroker(
                node_id=n, host=broker.address.host, port=broker.address.port, rack=f"r{n}"
            )
            for n, broker in enumerate(self.brokers)
        ]
        partition = MetadataResponsePartition(
            partition_index=0,
            leader_id=self.leader,
            leader_epoch=self.epoch,
            replica_nodes=list(range(len(brokers))),
        )
        topic = MetadataResponseTopic(
            name="t",
            topic_id=ID,
            error_code=self.topic_error,
            partitions=[] if self.topic_error else [partition],
        )
        return MetadataResponse(brokers=brokers, controller_id=0, topics=[topic])

    def _list_offsets(self, request: ListOffsetsRequest, version: int) -> Answer:
        timestamp = request.topics[0].partitions[0].timestamp
        offset = self.start if timestamp == -2 else len(self.log)
        found = ListOffsetsPartitionResponse(partition_index=0, offset=offset, leader_epoch=-1)
        partitions = [] if self.forgetful else [found]
        return ListOffsetsResponse(
            topics=[ListOffsetsTopicResponse(name="t", partitions=partitions)]
        )

    def _epoch_ends(self, request: OffsetForLeaderEpochRequest, version: int) -> Answer:
        epoch, offset = self.epoch_end
        end = EpochEndOffset(error_code=0, partition=0, leader_epoch=epoch, end_offset=offset)
        return OffsetForLeaderEpochResponse(
            topics=[OffsetForLeaderTopicResult(topic="t", partitions=[end])]
        )


def simulate(story: Coroutine[Any, Any, Result]) -> Result:
    """Run a story to its end in simulated time; it may not last longer than a minute of that."""
    with World(seed=7) as world:
        return world.run(story, until=60)
