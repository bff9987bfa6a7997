"""Random clients, crashes and lost messages: transactions end whole or absent, and all of them end.

A small world around the coordinator: a log that keeps, loses or doubtfully keeps appends;
partitions with the rules of partition leaders for epochs and markers; clients that share
transactional ids, lose answers, repeat requests, are replaced and come back as zombies; a
coordinator that crashes between any two events and is loaded anew. One seed gives one run.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import StateRecord
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.outcome import MarkerRequest, TransactionOutcome
from barnabas.transactions.records import decode_key, decode_value, encode_record
from barnabas.transactions.state import State
from barnabas.transactions.transaction import LAST_EPOCH, Producer, Transaction
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest

IDS = ("one", "two")
PARTITIONS = tuple(TopicPartition(topic, p) for topic in ("a", "b") for p in (0, 1))
TIMEOUT_MS = 5_000
OPTIONS = BrokerOptions.parse({})
RETRY = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}


@dataclass
class Attempt:
    """One transaction of one client, and what its client was told."""

    generation: int
    transactional_id: str
    written: set[TopicPartition] = field(default_factory=set)
    committed: set[TopicPartition] = field(default_factory=set)
    told: str = "nothing"


@dataclass
class Writer:
    """What a partition leader knows of one producer id."""

    epoch: int = -1
    coordinator_epoch: int = -1
    open: list[Attempt] = field(default_factory=list)


class Call(NamedTuple):
    """A request on its way: its kind and its arguments."""

    kind: str
    transactional_id: str
    producer: Producer
    version: int
    what: Any


Conversation = Generator[Call, Any, None]


class Append(NamedTuple):
    """An append that is not answered yet."""

    outcome: TransactionOutcome
    client: Client | None
    call: Call | None
    position: int | None
    """Where it is in the log; None when it did not get there and fails."""


class Client:
    """A producer as a conversation; its present request waits, travels or is lost."""

    def __init__(self, world: World, transactional_id: str, *, new_epochs: bool) -> None:
        self.transactional_id = transactional_id
        self.version = 5 if new_epochs else 3
        self.conversation = self.run(world)
        self.request: Call | None = next(self.conversation)
        self.is_waiting = False

    def answer(self, response: Any) -> None:
        self.is_waiting = False
        try:
            self.request = self.conversation.send(response)
        except StopIteration:
            self.request = None

    def call(self, kind: str, producer: Producer, what: Any = None) -> Call:
        return Call(kind, self.transactional_id, producer, self.version, what)

    def until_answered(self, call: Call) -> Generator[Call, Any, Any]:
        """Repeat a request until it has an answer that is not "come back"."""
        while True:
            response = yield call
            if response is not None and response.error_code not in RETRY:
                return response

    def run(self, world: World) -> Conversation:
        producer = Producer(-1, -1)
        while True:
            response = yield from self.until_answered(self.call("init", producer))
            if response.error_code != ErrorCode.NONE:
                return
            producer = Producer(response.producer_id, response.producer_epoch)
            generation = world.granted[producer]
            for _ in range(world.random.randint(1, 4)):
                attempt = Attempt(generation, self.transactional_id)
                world.attempts.append(attempt)
                next_producer = yield from self.transact(world, producer, attempt)
                if next_producer is None:
                    return
                producer = next_producer

    def transact(
        self, world: World, producer: Producer, attempt: Attempt
    ) -> Generator[Call, Any, Producer | None]:
        """Write to some partitions and end; return who goes on, None when fenced."""
        committed = world.random.random() < 0.7
        for partition in world.random.sample(PARTITIONS, world.random.randint(1, 3)):
            added = yield from self.until_answered(self.call("add", producer, partition))
            if added.error_code != ErrorCode.NONE:
                return None
            written = yield self.call("write", producer, (partition, attempt))
            if written is None or written.error_code != ErrorCode.NONE:
                committed = False
                break
        response = yield from self.until_answered(self.call("end", producer, committed))
        if response.error_code != ErrorCode.NONE:
            return None
        attempt.told = "committed" if committed else "aborted"
        if self.version < 5:
            return producer
        return Producer(response.producer_id, response.producer_epoch)


class Response(NamedTuple):
    """The answer of a partition, or of one added partition."""

    error_code: int


class World:
    """Everything that one seed plays with."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 1_000
        self.calm = False
        self.seen: Counter[str] = Counter()
        self.attempts: list[Attempt] = []
        self.generations: Counter[str] = Counter()
        self.granted: dict[Producer, int] = {}
        self.next_producer_id = 100
        self.writers: dict[TopicPartition, dict[int, Writer]] = {p: {} for p in PARTITIONS}
        # The second id begins close to its last epoch.
        old = Transaction(50, LAST_EPOCH - 3, TIMEOUT_MS, self.now_ms)
        self.log: list[StateRecord] = [encode_record(IDS[1], old)]
        self.safe = len(self.log)
        self.coordinator_epoch = 0
        self.clients = [self.new_client() for _ in range(3)]
        self.copies: list[Call] = []
        self.marks: list[tuple[TransactionCoordinator, MarkerRequest, TopicPartition]] = []
        self.reports: list[
            tuple[TransactionCoordinator, MarkerRequest, TopicPartition, ErrorCode]
        ] = []
        self.start()

    def new_client(self) -> Client:
        transactional_id = self.random.choice(IDS)
        return Client(self, transactional_id, new_epochs=self.random.random() < 0.5)

    # The coordinator and its log

    def start(self) -> None:
        """Load a coordinator; the one before is gone, and with it all it was waiting for."""
        self.coordinator_epoch += 1
        self.appends: list[Append] = []
        self.timers: dict[Any, int] = {}
        self.coordinator = TransactionCoordinator(OPTIONS, self.coordinator_epoch)
        for record in self.log:
            self.coordinator.replay(record)
        # The host's part: what is loaded is committed, or the next crash could take back what the
        # coordinator answers from memory alone.
        self.safe = len(self.log)
        # Markers of the coordinator before may still arrive; their reports find nobody.
        for outcome in self.coordinator.loaded(self.now_ms):
            self.carry_out(outcome)

    def crash(self) -> None:
        self.seen["crash"] += 1
        if self.appends:
            self.seen["crash with appends"] += 1
        if self.marks:
            self.seen["crash with markers"] += 1
        del self.log[self.random.randint(self.safe, len(self.log)) :]
        for append in self.appends:
            if append.client is not None:
                append.client.answer(None)
        self.start()

    def carry_out(
        self, outcome: TransactionOutcome, client: Client | None = None, call: Call | None = None
    ) -> None:
        for key, deadline_ms in outcome.timers:
            if deadline_ms is None:
                self.timers.pop(key, None)
            else:
                self.timers[key] = deadline_ms
        if not outcome.records:
            self.leave(outcome, outcome.replies, client, call)
            return
        position = None
        if self.calm or self.random.random() < 0.9:
            position = len(self.log)
            self.log += outcome.records
        self.appends.append(Append(outcome, client, call, position))

    def leave(
        self, outcome: TransactionOutcome, replies: Any, client: Client | None, call: Call | None
    ) -> None:
        """Let the markers and replies of an outcome leave."""
        for marker in outcome.markers:
            self.marks += [(self.coordinator, marker, p) for p in marker.partitions]
        if client is None:
            return
        assert call is not None
        [reply] = replies
        response = reply.response
        if call.kind == "add":
            [topic] = response.topic_results
            response = Response(topic.results_by_partition[0].partition_error_code)
        self.seen[f"{call.kind} {int(response.error_code)}"] += 1
        client.answer(None if self.unlucky(0.1) else response)

    def unlucky(self, chance: float) -> bool:
        return not self.calm and self.random.random() < chance

    def resolve(self, index: int) -> None:
        """Answer an append: it is committed, or it failed (and may be in the log all the same)."""
        append = self.appends.pop(index)
        outcome = append.outcome
        assert outcome.commit is not None
        assert outcome.undo is not None
        if append.position is None or self.unlucky(0.1):
            self.seen["append failed"] += 1
            replies = outcome.undo(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
            outcome.markers.clear()
        else:
            self.safe = max(self.safe, append.position + len(outcome.records))
            replies = outcome.replies
            outcome.commit()
            self.note_grant(outcome, append.call)
        self.leave(outcome, replies, append.client, append.call)

    def note_grant(self, outcome: TransactionOutcome, call: Call | None) -> None:
        """A new producer begins: whoever had the id before must not commit from here on."""
        [record, *_] = outcome.records
        transactional_id = decode_key(record.key)
        if call is None or call.kind != "init" or record.value is None or not transactional_id:
            return
        transaction = decode_value(record.value)
        if transaction.state is State.EMPTY:
            self.generations[transactional_id] += 1
            self.granted[transaction.producer] = self.generations[transactional_id]

    # Requests

    def deliver(self, call: Call, client: Client | None) -> None:
        if call.kind == "write":
            response = self.write(call.producer, call.what[0], call.what[1], call)
            if client is not None:
                client.answer(None if self.unlucky(0.1) else response)
            return
        outcome = self.ask(call, None)
        if outcome.needs_producer_id:
            self.next_producer_id += 1
            self.seen[f"{call.kind} with a fresh id"] += 1
            outcome = self.ask(call, self.next_producer_id)
        self.carry_out(outcome, client, call)

    def ask(self, call: Call, fresh: int | None) -> TransactionOutcome:
        transactional_id, (producer_id, epoch) = call.transactional_id, call.producer
        if call.kind == "init":
            init = InitProducerIdRequest(
                transactional_id=transactional_id,
                transaction_timeout_ms=TIMEOUT_MS,
                producer_id=producer_id,
                producer_epoch=epoch,
            )
            return self.coordinator.handle_init_producer_id(init, 4, "t", self.now_ms, fresh)
        if call.kind == "end":
            end = EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=call.what,
            )
            return self.coordinator.handle_end_txn(end, call.version, "t", self.now_ms, fresh)
        return self.enlist(call, call.what, verify_only=False)

    def enlist(
        self, call: Call, partition: TopicPartition, *, verify_only: bool
    ) -> TransactionOutcome:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=call.transactional_id,
            producer_id=call.producer.producer_id,
            producer_epoch=call.producer.epoch,
            verify_only=verify_only,
            topics=[
                AddPartitionsToTxnTopic(name=partition.topic, partitions=[partition.partition])
            ],
        )
        return self.coordinator.handle_add_partitions(transaction, 5, "t", self.now_ms)

    # Partitions

    def write(
        self, producer: Producer, partition: TopicPartition, attempt: Attempt, call: Call
    ) -> Response:
        writer = self.writers[partition].setdefault(producer.producer_id, Writer())
        if producer.epoch < writer.epoch:
            self.seen["write fenced"] += 1
            return Response(ErrorCode.INVALID_PRODUCER_EPOCH)
        if not writer.open:
            [reply] = self.enlist(call, partition, verify_only=True).replies
            code = reply.response.topic_results[0].results_by_partition[0].partition_error_code
            if code != ErrorCode.NONE:
                self.seen["write not verified"] += 1
                return Response(code)
        writer.epoch = producer.epoch
        writer.open.append(attempt)
        attempt.written.add(partition)
        return Response(ErrorCode.NONE)

    def mark(self, index: int) -> None:
        """Bring one marker to its partition, and what became of it back."""
        sender, marker, partition = self.marks.pop(index)
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not self.unlucky(0.15):
            code = self.append_marker(marker, partition)
            if self.unlucky(0.15):
                # Given up by the sender; the answer comes late, maybe to the next transaction.
                self.reports.append((sender, marker, partition, code))
                code = ErrorCode.REQUEST_TIMED_OUT
        self.seen[f"marker {int(code)}"] += 1
        if sender is self.coordinator:
            self.carry_out(sender.markers_written(marker, {partition: code}, self.now_ms))

    def append_marker(self, marker: MarkerRequest, partition: TopicPartition) -> ErrorCode:
        writer = self.writers[partition].setdefault(marker.producer_id, Writer())
        if marker.producer_epoch < writer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker.coordinator_epoch < writer.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        writer.epoch = marker.producer_epoch
        writer.coordinator_epoch = marker.coordinator_epoch
        for attempt in writer.open:
            if marker.committed:
                # The promise of fencing: nothing is committed for a producer that was replaced.
                assert attempt.generation == self.generations[attempt.transactional_id]
                attempt.committed.add(partition)
        writer.open.clear()
        return ErrorCode.NONE

    # Events

    def step(self) -> None:
        """Let one thing happen."""
        ready = [c for c in self.clients if c.request is not None and not c.is_waiting]
        events = ["client"] * 6 * bool(ready)
        events += ["append"] * 6 * bool(self.appends) + ["mark"] * 6 * bool(self.marks)
        events += ["timer"] * bool(self.timers)
        if not self.calm:
            events += ["crash", "replace", "copy", "report", "sweep"] * (
                self.random.random() < 0.15
            )
        match self.random.choice(events or ["sweep"]):
            case "client":
                self.travel(self.random.choice(ready))
            case "append":
                self.resolve(self.random.randrange(len(self.appends)))
            case "mark":
                self.mark(self.random.randrange(len(self.marks)))
            case "timer":
                key = min(self.timers, key=self.timers.__getitem__)
                self.now_ms = max(self.now_ms, self.timers.pop(key))
                self.carry_out(self.coordinator.on_timer(key, self.now_ms))
            case "crash":
                self.crash()
            case "replace":
                self.replace()
            case "copy" if self.copies:
                self.seen["late copy"] += 1
                call = self.copies.pop(self.random.randrange(len(self.copies)))
                self.deliver(call, None)
            case "report" if self.reports:
                sender, marker, partition, code = self.reports.pop()
                if sender is self.coordinator:
                    self.seen["late report"] += 1
                    self.carry_out(sender.markers_written(marker, {partition: code}, self.now_ms))
            case "sweep":
                self.sweep()

    def travel(self, client: Client) -> None:
        call = client.request
        assert call is not None
        if self.unlucky(0.1):
            if call.version >= 5 and call.kind == "end":
                # It is repeated by its client and arrives late as well: the epoch tells.
                self.copies.append(call)
            client.answer(None)
            return
        client.is_waiting = True
        self.deliver(call, client)

    def replace(self) -> None:
        """Start a client where another one ended or is left alone, as a zombie or for good."""
        index = self.random.randrange(len(self.clients))
        if len(self.clients) > 5:
            del self.clients[index]
        self.clients.append(self.new_client())

    def sweep(self) -> None:
        self.now_ms += self.random.choice((10, TIMEOUT_MS // 2, TIMEOUT_MS + 1))
        outcomes = self.coordinator.abort_timed_out(self.now_ms)
        self.seen["timed out"] += len(outcomes)
        if self.random.random() < 0.05:
            self.now_ms += 604_800_000
            outcomes += self.coordinator.expire(self.now_ms)
            self.seen["expired"] += sum(len(outcome.records) for outcome in outcomes)
        for outcome in outcomes:
            self.carry_out(outcome)

    def settle(self) -> None:
        """Let everything under way arrive, without new clients or faults."""
        self.calm = True
        self.clients, self.copies = [], []
        for _ in range(2_000):
            if self.appends or self.marks or self.timers:
                self.step()
            elif any(t.state is State.ONGOING for _, t in self.coordinator.transactions()):
                self.sweep()
            else:
                return
        raise AssertionError("the world does not come to rest")


def play(seed: int, steps: int = 400) -> World:
    world = World(seed)
    for _ in range(steps):
        world.step()
    world.settle()
    return world


def check(world: World) -> None:
    """Every transaction is whole or absent, as its client was told, and none is open."""
    for attempt in world.attempts:
        assert attempt.committed in (set(), attempt.written)
        if attempt.told == "committed":
            assert attempt.committed == attempt.written
        if attempt.told == "aborted":
            assert not attempt.committed
    for writers in world.writers.values():
        assert not any(writer.open for writer in writers.values())
    for _, transaction in world.coordinator.transactions():
        assert transaction.state.is_idle


@pytest.mark.parametrize("first", range(0, 160, 20))
def test_transactions_are_whole_or_absent_and_none_stays_undecided(first: int) -> None:
    for seed in range(first, first + 20):
        try:
            check(play(seed))
        except AssertionError as failure:
            failure.add_note(f"seed {seed}")
            raise


def test_the_worlds_are_eventful() -> None:
    """What is claimed above was put to the test: each fault and each refusal did happen."""
    seen: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for seed in range(40):
        world = play(seed)
        seen += world.seen
        told += Counter(attempt.told for attempt in world.attempts if attempt.written)
    assert min(told["committed"], told["aborted"], told["nothing"]) > 30
    for event in (
        "crash with appends",
        "crash with markers",
        "append failed",
        "late copy",
        "late report",
        "timed out",
        "expired",
        "write fenced",
        "write not verified",
        "init with a fresh id",
        "end with a fresh id",
        "init 51",
        "init 90",
        "add 49",
        "add 51",
        "add 90",
        "end 51",
        "end 90",
        "marker 0",
        "marker 6",
        "marker 7",
        "marker 52",
    ):
        assert seen[event] > 0, event


def test_one_seed_gives_one_run() -> None:
    assert play(7).log == play(7).log
