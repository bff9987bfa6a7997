"""A supervisor with its workers as real processes, and a load of idempotent records on them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

from barnabas import KafkaProducer

T = TypeVar("T")

DEADLINE_S = 40.0
IN_FLIGHT_MAX = 10_000
STARTED = re.compile(r"worker (\d+): started, pid=(\d+)")
LEAVING = re.compile(r"worker (\d+): leaving")


def until(found: Callable[[], T | None], what: str) -> T:
    """Wait until something is found that counts as true, and return it."""
    deadline_s = time.monotonic() + DEADLINE_S
    while not (value := found()):
        assert time.monotonic() < deadline_s, f"waited in vain for {what}"
        time.sleep(0.01)
    return value


class Supervised:
    """`barnabas start --workers` and what it says; workers are known by their numbers from 1 on."""

    def __init__(self, directory: Path, count: int, *words: str) -> None:
        self._directory = directory
        self._words = ("--data-dir", str(directory / "data"), *words)
        self.count = count
        self.process: subprocess.Popen[str] | None = None
        self.bootstrap = ""
        self._starts = 0

    def start(self, listen: str = "127.0.0.1:0") -> Supervised:
        """Start, and wait until all workers are ready."""
        self._starts += 1
        command = [sys.executable, "-m", "barnabas.cli", "start", "--listen", listen, *self._words]
        command += ["--workers", str(self.count)]
        with self._file("err").open("w") as errors, self._file("out").open("w") as output:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, text=True
            )
        until(lambda: "ready on" in self.out() or self.process.poll() is not None, "the workers")
        assert self.process.poll() is None, self.err()[-4000:]
        self.bootstrap = ",".join(re.findall(r"(?:PLAINTEXT|SASL_SSL)://([\d.]+:\d+)", self.out()))
        return self

    def end(self) -> None:
        """Kill what is left."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            until(lambda: not any(map(alive, self.pids())), "the end of the workers")

    def _file(self, name: str) -> Path:
        return self._directory / f"supervisor-{self._starts}.{name}"

    def out(self) -> str:
        """Return what it has printed."""
        return self._file("out").read_text()

    def err(self) -> str:
        """Return its log lines, and its workers'."""
        return self._file("err").read_text()

    def pid(self, number: int) -> int:
        """Return the process of a worker, the last one that was started."""
        return int([pid for each, pid in STARTED.findall(self.err()) if int(each) == number][-1])

    def pids(self) -> list[int]:
        """Return all processes of workers that were started."""
        return [int(pid) for _, pid in STARTED.findall(self.err())]

    def kill(self, number: int) -> int:
        """Kill a worker's process, and return its id."""
        pid = self.pid(number)
        os.kill(pid, signal.SIGKILL)
        return pid

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the supervisor."""
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self) -> int:
        """Wait for the end of the supervisor, and return its exit code."""
        assert self.process is not None
        return self.process.wait(DEADLINE_S)


def alive(pid: int) -> bool:
    """Return whether a process runs; one that is dead and not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def create(bootstrap: str, topic: str, partitions: int, replicas: int) -> None:
    """Create a topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, replicas)])[topic].result(DEADLINE_S)


def partition(bootstrap: str, topic: str, number: int = 0) -> PartitionMetadata:
    """Return leader and replicas of a partition, as soon as a broker knows a leader."""
    admin = AdminClient({"bootstrap.servers": bootstrap})

    def led() -> PartitionMetadata | None:
        found = admin.list_topics(topic, DEADLINE_S).topics[topic].partitions.get(number)
        return found if found is not None and found.leader >= 0 else None

    return until(led, f"a leader of {topic}-{number}")


class Load:
    """Numbered records to one partition, from an idempotent producer, until `finish`."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._ended = threading.Event()
        self._failures: list[object] = []
        self.acknowledged = 0
        """How many records are acknowledged."""
        self._acknowledged_s: float | None = None
        self.gap_s = 0.0
        """The longest time between two acknowledgements."""
        self._sent = 0
        self._thread = threading.Thread(target=self._send)

    def more(self, count: int = 50) -> None:
        """Wait until more records are acknowledged."""
        wanted = self.acknowledged + count
        until(lambda: self.acknowledged >= wanted or self._failures, "acknowledgements")
        assert not self._failures, self._failures

    def finish(self) -> int:
        """Stop sending; return how many were sent, all of which are acknowledged."""
        self._end()
        self._flush()
        assert not self._failures, self._failures
        assert self.acknowledged == self._sent
        return self._sent

    def check(self) -> None:
        """Finish, and read back: each record once, in order."""
        sent = self.finish()
        assert read(self._bootstrap, self._topic, sent) == [str(each) for each in range(sent)]

    def _flush(self) -> None:
        assert self._producer.flush(DEADLINE_S) == 0

    def _end(self) -> None:
        self._ended.set()
        self._thread.join()

    def __enter__(self) -> Load:
        self._connect()
        self._thread.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self._end()

    def _connect(self) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "log_level": 0,  # brokers go away here
            }
        )

    def _send(self) -> None:
        while not self._ended.is_set():
            if self._sent - self.acknowledged > IN_FLIGHT_MAX:
                self._producer.poll(0.01)
                continue
            self._producer.produce(
                self._topic, str(self._sent).encode(), partition=0, on_delivery=self._delivered
            )
            self._sent += 1
            self._producer.poll(0.002)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(error)
        else:
            self._acknowledge()

    def _acknowledge(self) -> None:
        self.acknowledged += 1
        now_s = time.monotonic()
        if self._acknowledged_s is not None:
            self.gap_s = max(self.gap_s, now_s - self._acknowledged_s)
        self._acknowledged_s = now_s


class OwnLoad(Load):
    """The same from our own producer."""

    def _connect(self) -> None:
        self._own = KafkaProducer(
            bootstrap_servers=self._bootstrap, enable_idempotence=True, linger_ms=1
        )

    def _send(self) -> None:
        while not self._ended.wait(0.002):
            sent = self._own.send(self._topic, str(self._sent).encode(), partition=0)
            sent.add_callback(lambda _: self._acknowledge())
            sent.add_errback(self._failures.append)
            self._sent += 1

    def _flush(self) -> None:
        self._own.flush(DEADLINE_S)
        self._own.close()


def read(bootstrap: str, topic: str, count: int) -> Sequence[str]:
    """Return the records of partition 0, up to its end; `count` of them are expected."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: list[str] = []
        deadline_s = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline_s:
            for message in consumer.consume(1000, 1.0):
                if message.error() is None:
                    found.append(message.value().decode())
                elif len(found) >= count:  # the end
                    return found
        return found
    finally:
        consumer.close()
