"""What tests that kill a writer share: starting it again until it is done, and reading back.

`planned` kills are stops of the writer (see `tests.system.stops`), which asks here for those of the
driver and of the broker.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.system.spark_session import ATTEMPTS, TOO_LATE
from tests.system.standalone import Process

from barnabas import KafkaConsumer, TopicPartition
from barnabas.testing import Cluster

DEADLINE_S = 300.0
"""For the next sign of life: a kill, or a batch that is done."""


def seed() -> int:
    """Return the seed of this run."""
    return int(os.environ.get("BARNABAS_CHAOS_SEED", "0")) or random.randrange(1 << 32)


class Run:
    """A driver from its first start to its end, however often it is killed in between.

    `start` starts it, with its output in a file; batches that are done are files in `commits`.
    """

    def __init__(
        self, start: Callable[[Path], Process], commits: str, cluster: Cluster, directory: Path
    ) -> None:
        self._start_one = start
        self._commits = commits
        self._cluster = cluster
        self._directory = directory
        self._lives = 0

    def finish(self, kills: list[dict[str, Any]]) -> None:
        """Run until all is written, and nobody is left to be killed."""
        (self._directory / "stops.json").write_text(json.dumps(kills))
        print(f"{len(kills)} kills:", *(f"{each['victim']}/{each['step']}" for each in kills))
        began_s = time.monotonic()
        left = list(kills)
        program, begun, begun_before = self._start(), 0, 0
        signs, deadline_s, late = 0, 0.0, 0
        try:
            while program.code != 0:
                for kill in [each for each in left if self._has("reached", each)]:
                    left.remove(kill)
                    if kill["victim"] == "driver":
                        program.end()
                    else:
                        self._cluster.kill()
                        self._cluster.start()
                    (self._directory / f"go-{kill['number']}").touch()
                begun = sum(self._has("begun", each) for each in kills)
                if program.code not in (None, 0):
                    # It was killed, or its query failed with what was killed, or the machine is
                    # so busy that Spark did not wait for a worker: that is one death more.
                    late = late + 1 if begun == begun_before else 0
                    assert late < ATTEMPTS, program.text()[-4000:]
                    assert not late or TOO_LATE in program.text(), program.text()[-4000:]
                    begun_before = begun
                    program.end()
                    program = self._start()
                done = len(list(self._directory.glob(f"{self._commits}/*")))
                if begun + done + self._lives != signs:
                    signs, deadline_s = begun + done + self._lives, time.monotonic() + DEADLINE_S
                assert time.monotonic() < deadline_s, program.text()[-4000:]
                time.sleep(0.02)
        finally:
            program.end()
        print(f"{self._lives} drivers, {time.monotonic() - began_s:.0f} s")
        missed = [each for each in kills if not self._has("begun", each)]
        assert missed == []

    def _has(self, name: str, kill: dict[str, Any]) -> bool:
        return (self._directory / f"{name}-{kill['number']}").exists()

    def _start(self) -> Process:
        self._lives += 1
        return self._start_one(self._directory / f"driver-{self._lives}.log")


def committed(bootstrap: str, topic: str, partitions: int) -> dict[int, list[Any]]:
    """Return the committed records of a topic, partition by partition."""
    places = [TopicPartition(topic, index) for index in range(partitions)]
    with KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        found: dict[int, list[Any]] = {place.partition: [] for place in places}
        while any(consumer.position(place) < ends[place] for place in places):
            for place, records in consumer.poll(timeout_ms=100).items():
                found[place.partition] += [
                    (each.key, each.value, each.timestamp, tuple(each.headers)) for each in records
                ]
        return found
