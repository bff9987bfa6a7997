"""`kafka-verifiable-producer`: send numbers, and print what became of each."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.flags import BOOTSTRAP, Flag, Flags, Given, UsageError

if TYPE_CHECKING:
    from barnabas import KafkaProducer
    from barnabas.structs import RecordMetadata

TOOL = "kafka-verifiable-producer"


def _acks(text: str) -> str:
    if text not in ("0", "1", "-1"):
        raise ValueError("must be 0, 1 or -1")
    return text


FLAGS = Flags(
    "Produce increasing integers, and print JSON about each of them.",
    (
        Flag("--topic", "TOPIC", "topic to produce to", required=True),
        BOOTSTRAP,
        Flag("--broker-list", "HOST:PORT[,...]", "older name of --bootstrap-server"),
        Flag("--max-messages", "N", "records to send; -1: until it is stopped", int, default=-1),
        Flag("--throughput", "N", "records per second; -1: no limit", int, default=-1),
        Flag("--acks", "ACKS", "acknowledgements to wait for: 0, 1 or -1", _acks, default="-1"),
        Flag("--producer.config", "FILE", "properties of the producer"),
        Flag("--command-config", "FILE", "the same"),
        Flag("--message-create-time", "MS", "timestamp of the first record", int, default=-1),
        Flag("--value-prefix", "N", "values are this number, a dot and the value", int),
        Flag("--repeating-keys", "N", "keys count from 0 to N - 1, again and again", int),
    ),
    helps_alone=True,
    ignores_words=False,
)


def run(given: Given) -> int:
    """Send records until there are enough, or it is stopped; print a summary."""
    options = producer_options(given)
    from barnabas import KafkaProducer
    from barnabas.cli.interruption import INTERRUPTION
    from barnabas.cli.kafka.client_properties import connecting
    from barnabas.cli.kafka.verifiable_events import print_event

    with connecting(given["producer.config"] or given["command-config"], "--command-config"):
        producer = KafkaProducer(**options)
    began_s = time.perf_counter()
    sending = Sending(given)
    try:
        with INTERRUPTION.held() as hold:
            hold.ends_by(sending.stop)
            print_event("startup_complete")
            sending.run(producer)
            producer.close()
            print_event("shutdown_complete")
            print_event(
                "tool_data",
                sent=sending.sent,
                acked=sending.acked,
                target_throughput=given["throughput"],
                avg_throughput=sending.acked / (time.perf_counter() - began_s),
            )
            INTERRUPTION.closed()
    finally:
        producer.close()
    return 0


def producer_options(given: Given) -> dict[str, Any]:
    """Return the options of the producer: the flags', overridden by those of the file."""
    from barnabas.cli.kafka.client_properties import read_file, understood
    from barnabas.config.clients.producer import ProducerOptions

    bootstrap = given["bootstrap-server"] or given["broker-list"]
    if not bootstrap:
        raise UsageError('Missing required argument "[bootstrap-server]"')
    if "producer.config" in given and "command-config" in given:
        raise UsageError("Options --producer.config and --command-config are mutually exclusive.")
    properties = {
        "bootstrap.servers": bootstrap,
        "acks": given["acks"],
        "retries": "0",
        "enable.idempotence": "false",  # as Java's producer decides, without retries
        **read_file("--producer.config", given["producer.config"]),
        **read_file("--command-config", given["command-config"]),
    }
    return dict(understood(TOOL, ProducerOptions, properties))


class Sending:
    """The records to send: which keys and values, when, and how many were written."""

    def __init__(self, given: Given) -> None:
        self._topic = given["topic"]
        most = given["max-messages"]
        self._most = None if most < 0 else most
        self._throughput = given["throughput"]
        self._prefix = given["value-prefix"]
        self._repeating = given["repeating-keys"]
        created = given["message-create-time"]
        self._created_ms = None if created == -1 else created
        self._stopped = False
        self.sent = 0
        self.acked = 0

    def stop(self) -> None:
        """Send no more."""
        self._stopped = True

    def run(self, producer: KafkaProducer) -> None:
        """Send until there are enough, or `stop` was called."""
        began_s = time.perf_counter()
        began_ms = time.time() * 1000
        while not self._stopped and (self._most is None or self.sent < self._most):
            key, value = self.next()
            timestamp_ms = None
            if self._created_ms is not None:
                timestamp_ms = int(self._created_ms)
                self._created_ms += time.time() * 1000 - began_ms
            self._send(producer, key, value, timestamp_ms)
            if self._throughput > 0:
                due_s = began_s + self.sent / self._throughput
                while not self._stopped and (left_s := due_s - time.perf_counter()) > 0:
                    time.sleep(min(left_s, 0.1))

    def next(self) -> tuple[str | None, str]:
        """Return the key and the value of the next record."""
        key = None if self._repeating is None else str(self.sent % self._repeating)
        value = str(self.sent) if self._prefix is None else f"{self._prefix}.{self.sent}"
        return key, value

    def _send(
        self, producer: KafkaProducer, key: str | None, value: str, timestamp_ms: int | None
    ) -> None:
        from barnabas.model.errors import BarnabasError

        self.sent += 1
        encoded = None if key is None else key.encode()
        try:
            future = producer.send(self._topic, value.encode(), encoded, timestamp_ms=timestamp_ms)
        except BarnabasError as failure:
            self._failed(key, value, failure)
            return
        future.add_callback(partial(self._written, key, value))
        future.add_errback(partial(self._failed, key, value))

    def _written(self, key: str | None, value: str, metadata: RecordMetadata) -> None:
        from barnabas.cli.kafka.verifiable_events import print_event

        self.acked += 1
        print_event(
            "producer_send_success",
            key=key,
            value=value,
            partition=metadata.partition,
            topic=metadata.topic,
            offset=metadata.offset,
        )

    def _failed(self, key: str | None, value: str, failure: BaseException) -> None:
        from barnabas.cli.kafka.verifiable_events import print_event

        print_event(
            "producer_send_error",
            key=key,
            value=value,
            topic=self._topic,
            exception=f"class {type(failure).__module__}.{type(failure).__qualname__}",
            message=str(failure),
        )
