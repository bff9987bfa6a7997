"""A compacted topic of which cleaning leaves long stretches of batches without records.

Every record comes from a producer of its own, whose last batch compaction must keep, if only as an
empty header; the records of a few keys replace each other, and some transactions are aborted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.unit.broker.serving import Wire, create_topic, produce

from barnabas import KafkaProducer
from barnabas.records.builder import build_batch

OPTIONS = {
    "log.cleaner.backoff.ms": "50",
    "log.flush.offset.checkpoint.interval.ms": "50",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
CONFIGS = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.bytes": "4000",
    "file.delete.delay.ms": "1000",
}
KEYS = 7
END = b"end"
FIRST_PRODUCER_ID = 1_000_000_000


class Read(NamedTuple):
    """A record as a client gives it."""

    offset: int
    key: bytes
    value: bytes


class Filling:
    """What is written to one topic, and what its readers must get."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap, self.topic = bootstrap, topic
        host, port = bootstrap.rsplit(":", 1)
        self._wire = Wire((host, int(port)))
        self._written: dict[int, tuple[bytes, bytes]] = {}
        self._aborted: set[int] = set()
        self._sent = 0
        create_topic(self._wire, topic, configs=CONFIGS)

    def close(self) -> None:
        self._wire.socket.close()

    def put(self, count: int) -> None:
        """Append records of producers that write once."""
        for _ in range(count):
            key, value = self._next()
            self._append(key, value, producer_id=FIRST_PRODUCER_ID + self._sent)

    def transact(self, count: int) -> None:
        """Append transactions of three records; every second one is aborted."""
        with KafkaProducer(
            bootstrap_servers=self.bootstrap, transactional_id=f"of-{self.topic}", linger_ms=1000
        ) as producer:
            producer.init_transactions()
            for number in range(count):
                producer.begin_transaction()
                sent = []
                for _ in range(3):
                    key, value = self._next()
                    handle = producer.send(self.topic, value, key, partition=0)
                    sent.append((handle, key, value))
                producer.flush()
                aborts = number % 2 == 0
                for handle, key, value in sent:
                    offset = handle.get(60).offset
                    self._written[offset] = (key, value)
                    if aborts:
                        self._aborted.add(offset)
                if aborts:
                    producer.abort_transaction()
                else:
                    producer.commit_transaction()

    def end(self) -> None:
        """Append the record at which readers end, behind a segment's end."""
        self._append(b"filler", b"x" * 3900)
        self._append(END, b"")

    def wait_until_compacted(self, data_dir: Path) -> None:
        """Wait until all closed segments have been gone over."""
        bases = [int(path.name[:20]) for path in (data_dir / f"{self.topic}-0").glob("*[0-9].log")]
        checkpoint = data_dir / "cleaner-offset-checkpoint"
        deadline = time.monotonic() + 60
        while f"{self.topic} 0 {max(bases)}\n" not in _text(checkpoint):
            assert time.monotonic() < deadline, _text(checkpoint)
            time.sleep(0.01)

    def check(self, read: Sequence[Read], *, committed: bool) -> None:
        """Hold that nothing is missing, double, out of order or not to be seen."""
        offsets = [each.offset for each in read]
        assert offsets == sorted(set(offsets)), "out of order, or double"
        newest: dict[bytes, int] = {}
        for offset, (key, _) in self._written.items():
            if offset not in self._aborted:
                newest[key] = max(offset, newest.get(key, -1))
        assert set(newest.values()) <= set(offsets), "a newest record is missing"
        for offset, key, value in read:
            assert self._written[offset] == (key, value)
        if committed:
            assert not self._aborted & set(offsets)

    def _next(self) -> tuple[bytes, bytes]:
        self._sent += 1
        return b"k%d" % (self._sent % KEYS), b"value %d" % self._sent

    def _append(self, key: bytes, value: bytes, producer_id: int = -1) -> None:
        identity = (
            {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
            if producer_id >= 0
            else {}
        )
        data = build_batch([(int(time.time() * 1000), key, value)], **identity)
        result = produce(self._wire, self.topic, data)
        assert result.error_code == 0, result
        self._written[result.base_offset] = (key, value)


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
