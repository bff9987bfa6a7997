"""The producer's core against a broker that answers from a script, in simulated time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import pytest
from tests.network.scripted_broker import CLOSE, Closing, ScriptedBroker

from barnabas.client.addresses import Address
from barnabas.client.cluster_client import ClusterClient
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.errors import (
    ConcurrentTransactionsError,
    InvalidRecordError,
    InvalidTxnStateError,
    KafkaTimeoutError,
    ProducerFencedError,
    TopicAuthorizationFailedError,
    TransactionAbortedError,
    UnknownError,
    UnknownMemberIdError,
    UnsupportedCompressionTypeError,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.producer.core import ProducerCore
from barnabas.records.batch import read_headers
from barnabas.simulation.network import DRIVER
from barnabas.simulation.world import World
from barnabas.structs import OffsetAndMetadata
from barnabas.wire.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


class Stage:
    """A scripted broker 1 and a producer; `errors` are answered to Produce, in turn."""

    def __init__(self) -> None:
        self.errors: list[Any] = []
        self.txn_errors: list[int] = []
        self.init_errors: list[int] = []
        self.offset_errors: list[int] = []
        self.hangs_up = False
        """Whether the coordinator hangs up when something is to be part of the transaction."""
        self.offset = 0
        self.partitions = 2
        self.versions: dict[Any, tuple[int, int]] = {}
        self.without: set[Any] = set()
        self.broker: ScriptedBroker

    def script(self) -> dict[Any, Callable[[Any, int], Any]]:
        answers: dict[Any, Callable[[Any, int], Any]] = {
            MetadataRequest: self.metadata,
            ProduceRequest: self.produce,
            InitProducerIdRequest: self.init,
            FindCoordinatorRequest: self.find,
            AddPartitionsToTxnRequest: self.add,
            EndTxnRequest: self.end,
            AddOffsetsToTxnRequest: self.add_offsets,
            TxnOffsetCommitRequest: self.commit_offsets,
        }
        return {kind: answer for kind, answer in answers.items() if kind not in self.without}

    def metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        host, port = self.broker.address
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host=host, port=port)],
            controller_id=1,
            topics=[
                MetadataResponseTopic(
                    name=topic.name,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=index,
                            leader_id=1,
                            leader_epoch=3,
                            replica_nodes=[1],
                            isr_nodes=[1],
                        )
                        for index in range(self.partitions)
                    ],
                )
                for topic in request.topics or ()
            ],
        )

    def produce(self, request: ProduceRequest, version: int) -> ProduceResponse:
        error = self.errors.pop(0) if self.errors else 0
        if isinstance(error, ProduceResponse):
            return error
        topics = []
        for topic in request.topic_data:
            answers = []
            for data in topic.partition_data:
                count = next(iter(read_headers(data.records))).count
                answers.append(
                    PartitionProduceResponse(
                        index=data.index,
                        error_code=error,
                        base_offset=self.offset if not error else -1,
                    )
                )
                self.offset += 0 if error else count
            topics.append(TopicProduceResponse(name=topic.name, partition_responses=answers))
        return ProduceResponse(responses=topics)

    def init(self, request: InitProducerIdRequest, version: int) -> InitProducerIdResponse:
        error = self.init_errors.pop(0) if self.init_errors else 0
        return InitProducerIdResponse(error_code=error, producer_id=7, producer_epoch=0)

    def find(self, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        host, port = self.broker.address
        found = Coordinator(key=request.coordinator_keys[0], node_id=1, host=host, port=port)
        return FindCoordinatorResponse(coordinators=[found])

    def add_offsets(
        self, request: AddOffsetsToTxnRequest, version: int
    ) -> AddOffsetsToTxnResponse | Closing:
        return CLOSE if self.hangs_up else AddOffsetsToTxnResponse()

    def commit_offsets(
        self, request: TxnOffsetCommitRequest, version: int
    ) -> TxnOffsetCommitResponse:
        error = self.offset_errors.pop(0) if self.offset_errors else 0
        place = TxnOffsetCommitResponsePartition(partition_index=0, error_code=error)
        return TxnOffsetCommitResponse(
            topics=[TxnOffsetCommitResponseTopic(name="t", partitions=[place])]
        )

    def add(
        self, request: AddPartitionsToTxnRequest, version: int
    ) -> AddPartitionsToTxnResponse | Closing:
        if self.hangs_up:
            return CLOSE
        error = self.txn_errors.pop(0) if self.txn_errors else 0
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                AddPartitionsToTxnTopicResult(
                    name=topic.name,
                    results_by_partition=[
                        AddPartitionsToTxnPartitionResult(
                            partition_index=index, partition_error_code=error
                        )
                        for index in topic.partitions
                    ],
                )
                for topic in request.v3_and_below_topics
            ]
        )

    def end(self, request: EndTxnRequest, version: int) -> EndTxnResponse:
        return EndTxnResponse(error_code=self.txn_errors.pop(0) if self.txn_errors else 0)

    def run(
        self, scenario: Callable[[ProducerCore], Coroutine[Any, Any, None]], **options: Any
    ) -> None:
        async def main(random: Random) -> None:
            broker = ScriptedBroker(self.script(), self.versions, Address(DRIVER, 9092))
            async with broker as self.broker:
                given = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 1, **options}
                parsed = parse_client_options(ProducerOptions, given)
                client = ClusterClient(
                    [self.broker.address], retry_backoff_ms=(1, 1), random=random
                )
                core = ProducerCore(
                    parsed,
                    post=asyncio.get_running_loop().call_soon,
                    wait=_unexpected,
                    cluster_client=client,
                    random=random,
                )
                await core.start(5000)
                await core.topics.know("t", 5000)
                try:
                    await scenario(core)
                finally:
                    await core.close(0)

        with World(seed=7) as world:
            world.run(main(world.random), until=60)


def _unexpected(*arguments: object) -> None:
    raise AssertionError(arguments)


def send(core: ProducerCore, partition: int = 0) -> Any:
    return core.accumulator.append("t", b"value", partition=partition)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_partitions_of_one_leader_share_a_request(stage: Stage) -> None:
    async def scenario(core: ProducerCore) -> None:
        futures = [send(core, 0), send(core, 1)]
        await core.flush()
        assert [future.value.offset for future in futures] == [0, 1]

    stage.run(scenario)
    [asked] = stage.broker.asked(ProduceRequest)
    assert len(asked.message.topic_data[0].partition_data) == 2  # type: ignore[attr-defined]
    header = next(iter(read_headers(asked.message.topic_data[0].partition_data[0].records)))  # type: ignore[attr-defined]
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 0, 0)


def test_a_new_leader_named_in_the_answer_is_used_at_once(stage: Stage) -> None:
    """KIP-951: no Metadata request is needed in between."""

    async def scenario(core: ProducerCore) -> None:
        host, port = stage.broker.address
        moved = PartitionProduceResponse(
            index=0,
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=4),
        )
        stage.errors = [
            ProduceResponse(
                responses=[TopicProduceResponse(name="t", partition_responses=[moved])],
                node_endpoints=[NodeEndpoint(node_id=2, host=host, port=port)],
            )
        ]
        before = len(stage.broker.asked(MetadataRequest))
        future = send(core)
        await core.flush(5000)
        assert future.succeeded()
        assert core.cluster_client.cluster.leader(future.batch.partition) == 2
        assert len(stage.broker.asked(MetadataRequest)) == before

    stage.run(scenario, retry_backoff_ms=10_000, retry_backoff_max_ms=10_000)


def test_an_answer_that_forgets_a_partition_fails_it_by_name(stage: Stage) -> None:
    async def scenario(core: ProducerCore) -> None:
        stage.errors = [ProduceResponse(responses=[])]
        future = send(core)
        await core.flush(5000)
        assert isinstance(future.exception, UnknownError)
        assert "missing in the broker's response" in str(future.exception)
        assert str(stage.broker.address) in str(future.exception)

    stage.run(scenario)


def test_record_errors_reach_their_records(stage: Stage) -> None:
    async def scenario(core: ProducerCore) -> None:
        bad = PartitionProduceResponse(
            index=0,
            error_code=ErrorCode.INVALID_RECORD,
            error_message="compacted topics need keys",
            record_errors=[
                BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no")
            ],
        )
        stage.errors = [
            ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[bad])])
        ]
        first, second = send(core), send(core)
        await core.flush(5000)
        assert isinstance(second.exception, InvalidRecordError)
        assert "record 1: no" in str(second.exception)
        assert "compacted topics need keys" in str(first.exception)

    stage.run(scenario)


def test_a_broker_without_producer_ids_is_written_to_without_one(stage: Stage) -> None:
    stage.without = {InitProducerIdRequest}

    async def scenario(core: ProducerCore) -> None:
        future = send(core)
        await core.flush(5000)
        assert future.succeeded()

    stage.run(scenario)
    [asked] = stage.broker.asked(ProduceRequest)
    header = next(iter(read_headers(asked.message.topic_data[0].partition_data[0].records)))  # type: ignore[attr-defined]
    assert (header.producer_id, header.base_sequence) == (-1, -1)


def test_zstd_needs_a_broker_that_knows_it(stage: Stage) -> None:
    stage.versions = {ProduceRequest: (3, 6)}

    async def scenario(core: ProducerCore) -> None:
        future = send(core)
        await core.flush(5000)
        assert isinstance(future.exception, UnsupportedCompressionTypeError)

    stage.run(scenario, compression_type="zstd")


def test_idle_topics_are_forgotten_and_found_again(stage: Stage) -> None:
    async def scenario(core: ProducerCore) -> None:
        core.topics.use("t", core.now_ms() - 6000)
        assert core.topics._wanted() == []
        assert core.accumulator.partition_count("t") == 0
        assert await core.topics.know("t", 5000) == 2
        assert send(core).batch.count == 1

    stage.run(scenario, metadata_max_idle_ms=5000)


def test_more_partitions_are_noticed(stage: Stage) -> None:
    async def scenario(core: ProducerCore) -> None:
        stage.partitions = 5
        await core.cluster_client.refresh(["t"])
        core.topics.learn()
        assert core.accumulator.partition_count("t") == 5

    stage.run(scenario)


def test_transactions_wait_for_busy_coordinators(stage: Stage) -> None:
    stage.init_errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR]

    async def scenario(core: ProducerCore) -> None:
        assert core.transaction_manager is not None
        await core.transaction_manager.initialize(5000)
        core.transaction_manager.begin()
        stage.txn_errors = [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE]
        future = send(core)
        await core.transaction_manager.commit(5000)
        assert future.succeeded()

    stage.run(scenario, transactional_id="tx")
    assert len(stage.broker.asked(InitProducerIdRequest)) == 3
    assert len(stage.broker.asked(FindCoordinatorRequest)) == 2
    assert len(stage.broker.asked(AddPartitionsToTxnRequest)) == 2
    [end] = stage.broker.asked(EndTxnRequest)
    assert end.message.committed  # type: ignore[attr-defined]


def test_an_empty_transaction_needs_no_coordinator(stage: Stage) -> None:
    async def scenario(core: ProducerCore) -> None:
        assert core.transaction_manager is not None
        await core.transaction_manager.initialize(5000)
        core.transaction_manager.begin()
        await core.transaction_manager.commit(5000)

    stage.run(scenario, transactional_id="tx")
    assert stage.broker.asked(EndTxnRequest) == []


def test_a_commit_that_takes_too_long_can_be_repeated(stage: Stage) -> None:
    async def scenario(core: ProducerCore) -> None:
        assert core.transaction_manager is not None
        await core.transaction_manager.initialize(5000)
        core.transaction_manager.begin()
        send(core)
        await core.flush(5000)
        stage.txn_errors = [ErrorCode.CONCURRENT_TRANSACTIONS] * 100
        with pytest.raises(KafkaTimeoutError, match="not completed within 30 ms") as caught:
            await core.transaction_manager.commit(30)
        assert isinstance(caught.value.__cause__, ConcurrentTransactionsError)
        stage.txn_errors = []
        await core.transaction_manager.commit(5000)
        core.transaction_manager.begin()

    stage.run(scenario, transactional_id="tx")


def test_the_steps_of_a_transaction_share_its_time(stage: Stage) -> None:
    """No call takes longer than it may because it has several things to wait for."""

    async def scenario(core: ProducerCore) -> None:
        manager = core.transaction_manager
        assert manager is not None
        await manager.initialize(5000)
        now_ms, waits = 1000.0, []

        async def step(*_: Any, **limit: Any) -> Any:
            nonlocal now_ms
            waits.append(limit["timeout_ms"])
            now_ms += 60
            return core.sender.identity

        core.now_ms = lambda: now_ms  # type: ignore[method-assign]
        core.flush = lambda timeout_ms: step(timeout_ms=timeout_ms)  # type: ignore
        core.landed = lambda timeout_ms: step(timeout_ms=timeout_ms)  # type: ignore
        core.coordinator.end = step  # type: ignore[method-assign]
        core.coordinator.init_producer_id = step  # type: ignore[method-assign]
        manager.begin()
        manager.transaction.begun = True
        await manager.commit(100)
        assert waits == [100, 40]
        waits.clear()
        manager.begin()
        manager.transaction.begun = manager.transaction.epoch_spent = True
        await manager.abort(100)
        assert waits == [100, 40, 0]
        waits.clear()
        manager.begin()
        await core.close(150)
        assert waits == [150, 90], "an abort and a flush"

    stage.run(scenario, transactional_id="tx")


def test_a_failed_transaction_is_aborted_under_a_new_epoch(stage: Stage) -> None:
    async def scenario(core: ProducerCore) -> None:
        assert core.transaction_manager is not None
        await core.transaction_manager.initialize(5000)
        core.transaction_manager.begin()
        stage.errors = [ErrorCode.INVALID_PRODUCER_EPOCH]
        bad = send(core)
        await core.flush(5000)
        assert bad.failed()
        with pytest.raises(type(bad.exception)):
            await core.transaction_manager.commit(5000)
        await core.transaction_manager.abort(5000)
        core.transaction_manager.begin()
        assert not isinstance(send(core), int)
        await core.transaction_manager.commit(5000)

    stage.run(scenario, transactional_id="tx")
    assert [asked.message.committed for asked in stage.broker.asked(EndTxnRequest)] == [  # type: ignore[attr-defined]
        False,
        True,
    ]


@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE])
def test_a_fenced_producer_is_of_no_use_any_more(stage: Stage, code: ErrorCode) -> None:
    async def scenario(core: ProducerCore) -> None:
        assert core.transaction_manager is not None
        await core.transaction_manager.initialize(5000)
        core.transaction_manager.begin()
        stage.txn_errors = [code]
        future = send(core)
        await core.flush(5000)
        expected = (ProducerFencedError, InvalidTxnStateError)
        assert isinstance(future.exception, expected)
        for wish in (core.transaction_manager.commit, core.transaction_manager.abort):
            with pytest.raises(expected):
                await wish(5000)

    stage.run(scenario, transactional_id="tx")


OFFSETS = {TopicPartition("t", 0): OffsetAndMetadata(5, "", -1)}


def ends(stage: Stage) -> list[bool]:
    return [asked.message.committed for asked in stage.broker.asked(EndTxnRequest)]  # type: ignore[attr-defined]


def asked_ids(stage: Stage) -> list[int]:
    return [asked.message.producer_id for asked in stage.broker.asked(InitProducerIdRequest)]  # type: ignore[attr-defined]


def test_offsets_that_the_group_refused_are_aborted_at_the_coordinator(stage: Stage) -> None:
    """Else the next transaction would commit those of them that the group has taken."""
    stage.offset_errors = [ErrorCode.UNKNOWN_MEMBER_ID]

    async def scenario(core: ProducerCore) -> None:
        assert core.transaction_manager is not None
        await core.transaction_manager.initialize(5000)
        core.transaction_manager.begin()
        with pytest.raises(UnknownMemberIdError):
            await core.transaction_manager.commit_offsets(OFFSETS, "g", 5000)
        await core.transaction_manager.abort(5000)
        core.transaction_manager.begin()

    stage.run(scenario, transactional_id="tx")
    assert ends(stage) == [False]
    assert asked_ids(stage) == [-1]


@pytest.mark.parametrize("wish", ["commit", "abort"])
def test_offsets_of_which_nobody_knows_are_left_to_an_old_epoch(stage: Stage, wish: str) -> None:
    """The coordinator may have begun a transaction: a new epoch ends it, and harms nothing else."""

    async def scenario(core: ProducerCore) -> None:
        assert core.transaction_manager is not None
        await core.transaction_manager.initialize(5000)
        core.transaction_manager.begin()
        stage.hangs_up = True
        with pytest.raises(KafkaTimeoutError, match="adding offsets to the transaction"):
            await core.transaction_manager.commit_offsets(OFFSETS, "g", 100)
        await getattr(core.transaction_manager, wish)(5000)
        core.transaction_manager.begin()

    stage.run(scenario, transactional_id="tx")
    assert ends(stage) == []
    assert asked_ids(stage) == [-1, 7]


def test_partitions_of_which_nobody_knows_are_left_to_an_old_epoch(stage: Stage) -> None:
    async def scenario(core: ProducerCore) -> None:
        assert core.transaction_manager is not None
        await core.transaction_manager.initialize(5000)
        core.transaction_manager.begin()
        stage.hangs_up = True
        future = send(core)
        with pytest.raises(KafkaTimeoutError):
            await core.flush(100)
        with pytest.raises(KafkaTimeoutError, match="the producer id of 'tx'"):
            # All of it goes to waiting for the coordinator.
            await core.transaction_manager.abort(100)
        assert isinstance(future.exception, TransactionAbortedError)
        stage.hangs_up = False
        await core.transaction_manager.abort(5000)
        core.transaction_manager.begin()
        kept = send(core)
        await core.transaction_manager.commit(5000)
        assert kept.succeeded()

    stage.run(scenario, transactional_id="tx")
    assert ends(stage) == [True]
    assert asked_ids(stage) == [-1, 7]


def test_a_partition_that_is_refused_is_asked_for_once(stage: Stage) -> None:
    async def scenario(core: ProducerCore) -> None:
        assert core.transaction_manager is not None
        await core.transaction_manager.initialize(5000)
        core.transaction_manager.begin()
        stage.txn_errors = [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 100
        refused = send(core)
        await core.flush(5000)
        await asyncio.sleep(10)
        assert isinstance(refused.exception, TopicAuthorizationFailedError)
        assert len(stage.broker.asked(AddPartitionsToTxnRequest)) == 1
        stage.txn_errors = []
        await core.transaction_manager.abort(5000)

    stage.run(scenario, transactional_id="tx")


def test_offsets_that_came_late_are_committed_with_the_second_call(stage: Stage) -> None:
    async def scenario(core: ProducerCore) -> None:
        assert core.transaction_manager is not None
        await core.transaction_manager.initialize(5000)
        core.transaction_manager.begin()
        stage.hangs_up = True
        with pytest.raises(KafkaTimeoutError):
            await core.transaction_manager.commit_offsets(OFFSETS, "g", 100)
        stage.hangs_up = False
        await core.transaction_manager.commit_offsets(OFFSETS, "g", 60_000)
        await core.transaction_manager.commit(5000)

    stage.run(scenario, transactional_id="tx")
    assert ends(stage) == [True]
    assert asked_ids(stage) == [-1]
