"""A sender with an accumulator and a broker made of numbers, for tests that move time by hand."""

from __future__ import annotations

from typing import Any

from barnabas.client.retry import Backoff
from barnabas.model.ids import TopicPartition
from barnabas.producer.accumulator import Accumulator, BufferPool, RecordFuture
from barnabas.producer.batch import ProducerBatch
from barnabas.producer.identity import Identity
from barnabas.producer.sender import Rules, Sender
from barnabas.wire.messages.produce import PartitionProduceResponse

NOW = 1_000_000.0
NODE = 1
ME = Identity(4000, 0)


class World:
    """One topic `t` whose partitions are all led by broker 1."""

    def __init__(
        self, partitions: int = 2, batch_size: int = 500, known: bool = True, **rules: Any
    ) -> None:
        """Unless brokers are not to know the producer yet, several batches may be on their way."""
        self._known = known
        self.now_ms = NOW
        self.leaders: dict[int, int] = dict.fromkeys(range(partitions), NODE)
        self.accumulator = Accumulator(
            BufferPool(1_000_000, batch_size),
            wake=lambda: None,
            choose=lambda topic: 0,
            wait=_unexpected,
            clock=lambda: int(self.now_ms),
        )
        self.accumulator.add_topic("t", partitions)
        self.sender = Sender(
            self.accumulator,
            Rules(**rules),
            lambda partition: self.leaders.get(partition.partition),
            Backoff(lambda: 0.5, initial_ms=100, max_ms=1000),
        )
        if self.sender.rules.idempotent:
            self.sender.become(ME)

    def send(self, value: bytes = b"v", partition: int = 0) -> RecordFuture:
        future = self.accumulator.append("t", value, partition=partition)
        assert isinstance(future, RecordFuture), future
        return future

    def send_batch(self, partition: int = 0) -> RecordFuture:
        """Send a record that is a batch of its own."""
        return self.send(b"x" * 600, partition)

    def drain(self) -> list[ProducerBatch]:
        """Take the batches of the next request to broker 1."""
        self.sender.collect(self.now_ms)
        for queue in self.sender.queues.values() if self._known else ():
            queue.sequences.known = True
        queues = self.sender.ready(self.now_ms).nodes.get(NODE)
        return self.sender.drain(NODE, queues, self.now_ms) if queues else []

    def settle(
        self,
        batch: ProducerBatch,
        code: int = 0,
        offset: int = 0,
        broker: str = "",
        **more: Any,
    ) -> None:
        answer = PartitionProduceResponse(error_code=code, base_offset=offset, **more)
        self.sender.settle(batch, answer, self.now_ms, broker)

    def queue(self, partition: int = 0) -> Any:
        return self.sender.queues[TopicPartition("t", partition)]


def _unexpected(*arguments: object) -> None:
    raise AssertionError(arguments)
