"""`wakeup` ends what a consumer waits for: once, from any thread, from a signal handler.

The broker's answers are held back by a proxy, and all times of the consumer are a minute or more,
so a call that ends soon has ended because of the wakeup.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.network.fault_proxy import FaultProxy

import barnabas.blocking.consumer
from barnabas import ConsumerRebalanceListener, OffsetAndMetadata
from barnabas.blocking.consumer import KafkaConsumer
from barnabas.errors import WakeupError
from barnabas.model.ids import TopicPartition
from barnabas.testing import Cluster
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.schema import Message

Topic = Callable[..., str]

MINUTE_MS = 60_000
SOON_S = 20.0
"""Far less than what the calls may take, and plenty for a busy machine."""
PROMISED_S = 0.05
TRIES = 20
"""In how many tries a call must once end in the promised time: the machine may be busy."""


@pytest.fixture(autouse=True)
def _patient_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let polls look at nothing by themselves, so that only a wakeup ends them."""
    monkeypatch.setattr(barnabas.blocking.consumer, "_LOOK_S", MINUTE_MS / 1000)


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[FaultProxy]:
    with FaultProxy(cluster.bootstrap) as running:
        yield running
        running.heal()


@pytest.fixture
def make(proxy: FaultProxy) -> Iterator[Callable[..., KafkaConsumer]]:
    made: list[KafkaConsumer] = []

    def new(**options: Any) -> KafkaConsumer:
        given: dict[str, Any] = {
            "bootstrap_servers": proxy.bootstrap,
            "default_api_timeout_ms": MINUTE_MS,
            "request_timeout_ms": MINUTE_MS,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            **options,
        }
        made.append(KafkaConsumer(**given))
        return made[-1]

    yield new
    proxy.heal()
    for consumer in made:
        consumer.close(timeout_ms=5000)


class Call:
    """A call in a thread of its own, and how it ended."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.result: Any = None
        self.failure: BaseException | None = None
        self._function = function
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._function()
        except BaseException as failure:  # noqa: BLE001  # shown by `ended`
            self.failure = failure

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def ended(self) -> BaseException | None:
        """Return how it ended, which must be soon."""
        began_s = time.monotonic()
        self._thread.join(SOON_S)
        assert not self.is_running, f"still waiting {time.monotonic() - began_s:.1f} s later"
        return self.failure


CALLS: dict[str, tuple[type[Message], Callable[[KafkaConsumer, TopicPartition], Any]]] = {
    "commit": (
        OffsetCommitRequest,
        lambda consumer, it: consumer.commit({it: OffsetAndMetadata(1, "", -1)}),
    ),
    "committed": (OffsetFetchRequest, lambda consumer, it: consumer.committed(it)),
    "position": (OffsetFetchRequest, lambda consumer, it: consumer.position(it)),
    "position by policy": (ListOffsetsRequest, lambda consumer, it: consumer.position(it)),
    "offsets_for_times": (
        ListOffsetsRequest,
        lambda consumer, it: consumer.offsets_for_times({it: 0}),
    ),
    "beginning_offsets": (
        ListOffsetsRequest,
        lambda consumer, it: consumer.beginning_offsets([it]),
    ),
    "end_offsets": (ListOffsetsRequest, lambda consumer, it: consumer.end_offsets([it])),
    "topics": (MetadataRequest, lambda consumer, it: consumer.topics()),
    "partitions_for_topic": (
        MetadataRequest,
        lambda consumer, it: consumer.partitions_for_topic("unheard-of"),
    ),
    "poll": (OffsetFetchRequest, lambda consumer, it: consumer.poll(MINUTE_MS)),
    "poll by policy": (ListOffsetsRequest, lambda consumer, it: consumer.poll(MINUTE_MS)),
    "poll_arrow": (ListOffsetsRequest, lambda consumer, it: consumer.poll_arrow(MINUTE_MS)),
    "consume": (ListOffsetsRequest, lambda consumer, it: consumer.consume(1, timeout=60)),
    "iteration": (ListOffsetsRequest, lambda consumer, it: next(consumer)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_wakeup_ends_each_call_that_waits(
    proxy: FaultProxy, make: Callable[..., KafkaConsumer], topic: Topic, name: str
) -> None:
    """It raises WakeupError although no answer has come; after that, the same call is done."""
    kind, function = CALLS[name]
    partition = TopicPartition(topic(records=3), 0)
    consumer = make(group_id=f"group-of-{partition.topic}")
    consumer.assign([partition])
    held = proxy.stall(kind, at="answer")
    call = Call(lambda: function(consumer, partition))
    assert held.happened.wait(SOON_S), "the request was never sent"
    assert call.is_running
    consumer.wakeup()
    assert isinstance(call.ended(), WakeupError)
    proxy.heal()
    again = Call(lambda: function(consumer, partition))
    assert again.ended() is None, "the wakeup was for one call"


@pytest.mark.parametrize("name", CALLS)
def test_a_wakeup_ends_each_call_within_50_ms(
    proxy: FaultProxy, make: Callable[..., KafkaConsumer], topic: Topic, name: str
) -> None:
    """Nobody looks now and then whether there was one: the wait itself is ended."""
    kind, function = CALLS[name]
    partition = TopicPartition(topic(records=3), 0)
    consumer = make(group_id=f"group-of-{partition.topic}")
    consumer.assign([partition])
    took_s: list[float] = []
    ended_s: list[float] = []

    def wait() -> None:
        try:
            function(consumer, partition)
        finally:
            ended_s.append(time.monotonic())

    while len(took_s) < TRIES and min(took_s, default=PROMISED_S) >= PROMISED_S:
        held = proxy.stall(kind, at="answer")
        call = Call(wait)
        assert held.happened.wait(SOON_S), "the request was never sent"
        woken_s = time.monotonic()
        consumer.wakeup()
        assert isinstance(call.ended(), WakeupError)
        took_s.append(ended_s[-1] - woken_s)
        proxy.heal()
    assert min(took_s) < PROMISED_S, took_s


def test_a_wakeup_from_a_signal_handler(
    proxy: FaultProxy, make: Callable[..., KafkaConsumer], topic: Topic
) -> None:
    """The thread that waits is the one that the signal interrupts."""
    assert threading.current_thread() is threading.main_thread()
    partition = TopicPartition(topic(records=3), 0)
    consumer = make(group_id=f"group-of-{partition.topic}")
    consumer.assign([partition])
    before = signal.signal(signal.SIGUSR1, lambda *_: consumer.wakeup())
    try:
        for kind, function in (CALLS["commit"], CALLS["poll"], CALLS["end_offsets"]):
            held = proxy.stall(kind, at="answer")

            def send_signal(happened: threading.Event = held.happened) -> None:
                assert happened.wait(SOON_S)
                os.kill(os.getpid(), signal.SIGUSR1)

            sender = threading.Thread(target=send_signal)
            sender.start()
            began_s = time.monotonic()
            with pytest.raises(WakeupError):
                function(consumer, partition)
            assert time.monotonic() - began_s < 2 * SOON_S
            sender.join()
            proxy.heal()
        # And many signals while it goes through its own code: none of them hangs it.
        signal.setitimer(signal.ITIMER_REAL, 0)
        storm = signal.signal(signal.SIGALRM, lambda *_: consumer.wakeup())
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        try:
            woken = 0
            deadline_s = time.monotonic() + SOON_S
            while woken < 200 and time.monotonic() < deadline_s:
                try:
                    consumer.poll(MINUTE_MS)
                except WakeupError:
                    woken += 1
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, storm)
        assert woken == 200
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_wakeup_before_a_call_is_for_the_next_that_can_be_ended(
    make: Callable[..., KafkaConsumer], topic: Topic
) -> None:
    """Calls that do not wait are done; of those that do, one raises."""
    partition = TopicPartition(topic(records=3), 0)
    consumer = make(group_id=f"group-of-{partition.topic}")
    consumer.assign([partition])
    consumer.wakeup()
    consumer.wakeup()
    consumer.seek(partition, 1)
    consumer.pause(partition)
    consumer.resume(partition)
    assert consumer.position(partition) == 1
    assert consumer.assignment() == {partition}
    with pytest.raises(WakeupError):
        consumer.beginning_offsets([partition])
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    consumer.wakeup()
    with pytest.raises(WakeupError):
        consumer.commit()
    consumer.commit({partition: OffsetAndMetadata(2, "", -1)})
    assert consumer.committed(partition) == 2
    consumer.wakeup()
    consumer.close()


PROTOCOLS: dict[str, list[type[Message]]] = {
    "classic": [JoinGroupRequest, SyncGroupRequest],
    "consumer": [ConsumerGroupHeartbeatRequest],
}


@pytest.mark.parametrize(
    ("protocol", "kind"), [(name, kind) for name, kinds in PROTOCOLS.items() for kind in kinds]
)
def test_a_wakeup_during_a_rebalance(
    proxy: FaultProxy,
    make: Callable[..., KafkaConsumer],
    topic: Topic,
    protocol: str,
    kind: type[Message],
) -> None:
    """The poll ends though the group is silent; a later one takes the partitions, once."""
    name = topic(partitions=2, records=2)
    listener = Listener()
    held = proxy.stall(kind, at="answer")
    consumer = make(group_id=f"group-of-{name}", group_protocol=protocol)
    consumer.subscribe([name], listener=listener)
    call = Call(lambda: consumer.poll(MINUTE_MS))
    assert held.happened.wait(SOON_S)
    consumer.wakeup()
    assert isinstance(call.ended(), WakeupError)
    assert listener.calls == []
    proxy.heal()
    read_all(consumer, 4)
    assert listener.calls == [("assigned", 2)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_wakeup_while_the_listener_runs_breaks_nothing_off(
    make: Callable[..., KafkaConsumer], topic: Topic, protocol: str
) -> None:
    """The step of the rebalance is finished first; then the poll raises."""
    name = topic(partitions=2, records=2)
    listener = Listener(gate=threading.Event())
    consumer = make(group_id=f"group-of-{name}", group_protocol=protocol)
    consumer.subscribe([name], listener=listener)
    call = Call(lambda: consumer.poll(MINUTE_MS))
    assert listener.entered.wait(SOON_S)
    consumer.wakeup()
    assert listener.gate is not None
    listener.gate.set()
    assert isinstance(call.ended(), WakeupError)
    assert listener.calls == [("assigned", 2)]
    assert len(consumer.assignment()) == 2
    read_all(consumer, 4)
    assert listener.calls == [("assigned", 2)]


def test_a_wakeup_of_a_call_inside_the_listener_comes_out_of_the_poll(
    proxy: FaultProxy, make: Callable[..., KafkaConsumer], topic: Topic
) -> None:
    """As with Kafka: it is WakeupError, not a failure of the listener."""
    name = topic(partitions=1, records=3)
    partition = TopicPartition(name, 0)
    consumer = make(group_id=f"group-of-{name}")
    held = proxy.stall(OffsetCommitRequest, at="answer")
    listener = Listener(inside=lambda: consumer.commit({partition: OffsetAndMetadata(1, "", -1)}))
    consumer.subscribe([name], listener=listener)
    call = Call(lambda: consumer.poll(MINUTE_MS))
    assert held.happened.wait(SOON_S)
    consumer.wakeup()
    assert isinstance(call.ended(), WakeupError)
    assert isinstance(listener.failure, WakeupError)
    proxy.heal()
    read_all(consumer, 2)


def test_a_wakeup_while_offsets_are_committed_before_a_rebalance(
    proxy: FaultProxy, make: Callable[..., KafkaConsumer], topic: Topic
) -> None:
    """The next poll commits them again, and only then gives the partitions up."""
    name = topic(partitions=2, records=2)
    options: dict[str, Any] = {
        "group_id": f"group-of-{name}",
        "enable_auto_commit": True,
        "auto_commit_interval_ms": 10 * MINUTE_MS,
        "heartbeat_interval_ms": 50,
        "partition_assignment_strategy": "range",
    }
    listener = Listener()
    consumer = make(**options)
    consumer.subscribe([name], listener=listener)
    read_all(consumer, 4)
    held = proxy.stall(OffsetCommitRequest, at="answer")
    other = make(**options)
    other.subscribe([name])
    joining = Call(lambda: other.poll(MINUTE_MS))
    call = Call(lambda: consumer.poll(MINUTE_MS))
    assert held.happened.wait(SOON_S)
    consumer.wakeup()
    assert isinstance(call.ended(), WakeupError)
    assert listener.calls == [("assigned", 2)], "nothing was given up yet"
    proxy.heal()
    while len(consumer.assignment()) != 1:
        assert joining.is_running or joining.failure is None
        consumer.poll(100)
    assert listener.calls == [("assigned", 2), ("revoked", 2), ("assigned", 1)]
    other.wakeup()
    joining.ended()
    assert [other.committed(TopicPartition(name, number)) for number in (0, 1)] == [2, 2]


class Listener(ConsumerRebalanceListener):
    """A listener that remembers, and may wait for a gate or call something."""

    def __init__(
        self,
        gate: threading.Event | None = None,
        inside: Callable[[], Any] | None = None,
    ) -> None:
        self.calls: list[tuple[str, int]] = []
        self.entered = threading.Event()
        self.gate = gate
        self.failure: BaseException | None = None
        self._inside = inside

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.entered.set()
        if self.gate is not None:
            assert self.gate.wait(SOON_S)
        self.calls.append(("assigned", len(assigned)))
        if self._inside is not None:
            try:
                self._inside()
            except BaseException as failure:
                self.failure = failure
                raise

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self.calls.append(("revoked", len(revoked)))


def read_all(consumer: KafkaConsumer, count: int) -> None:
    """Poll until so many records have come."""
    read = 0
    deadline_s = time.monotonic() + 2 * SOON_S
    while read < count:
        assert time.monotonic() < deadline_s, f"{read} of {count} records"
        read += sum(len(records) for records in consumer.poll(1000).values())
