"""Producers that are killed at random leave transactions whole or absent: the sum stays 0.

`BARNABAS_CHAOS_SECONDS` says for how long producers are killed (3 s unless it is set).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.compat.samples import until_deadline
from tests.compat.test_transactions_confluent_kafka import (
    committed_values,
    create,
    end_of,
    transactional,
)
from tests.compat.transferring import PARTITIONS

pytestmark = pytest.mark.compat

SECONDS = float(os.environ.get("BARNABAS_CHAOS_SECONDS", "3"))
SEED = int(os.environ.get("BARNABAS_CHAOS_SEED", "1"))
PRODUCERS = 3
PROGRAM = Path(__file__).with_name("transferring.py")


class Producers:
    """Some programs under transactional ids of their own; each is replaced when it is killed."""

    def __init__(self, bootstrap: str, topic: str, directory: Path) -> None:
        self.ids = [f"{topic}-{number}" for number in range(PRODUCERS)]
        self._words = [bootstrap, topic]
        self._directory = directory
        self._random = Random(SEED)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.kills = 0
        for name in self.ids:
            self._start(name)

    def kill_one(self) -> None:
        name = self._random.choice(self.ids)
        assert self._running[name].poll() is None, f"{name} ended by itself: {self.said()}"
        self._kill(name)
        self.kills += 1
        self._start(name)

    def stop(self) -> None:
        for name in list(self._running):
            self._kill(name)

    def said(self) -> list[list[str]]:
        """Return the words of every line that any of the programs wrote."""
        lines = []
        for path in sorted(self._directory.glob("*.out")):
            # The last line of a killed program may be cut.
            lines += [line.split() for line in path.read_text().split("\n")[:-1]]
        return lines

    def wait(self) -> float:
        return self._random.uniform(0.05, 0.6)

    def _start(self, name: str) -> None:
        seed = str(self._random.randrange(2**31))
        path = self._directory / f"{name}-{self.kills}-{seed}.out"
        with path.open("wb") as output:
            words = [sys.executable, str(PROGRAM), *self._words, name, seed]
            self._running[name] = subprocess.Popen(words, stdout=output, stderr=output)

    def _kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait()


@pytest.fixture
def producers(quick_bootstrap: str, name: str, tmp_path: Path) -> Iterator[Producers]:
    create(quick_bootstrap, name, PARTITIONS)
    running = Producers(quick_bootstrap, name, tmp_path)
    yield running
    running.stop()


def test_the_sum_stays_zero(quick_bootstrap: str, name: str, producers: Producers) -> None:
    for _ in until_deadline("every producer has committed, and one has aborted", 60):
        said = producers.said()
        done = {words[1].split("/")[0] for words in said if words[0] == "committed"}
        if done == set(producers.ids) and any(words[0] == "aborted" for words in said):
            break
        time.sleep(0.05)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end or producers.kills < SECONDS:  # one a second, or more
        time.sleep(producers.wait())
        producers.kill_one()
    producers.stop()
    for transactional_id in producers.ids:  # ends what the last kill left open
        transactional(quick_bootstrap, transactional_id)
    for partition in range(PARTITIONS):
        assert end_of(quick_bootstrap, name, committed=True, partition=partition) == end_of(
            quick_bootstrap, name, committed=False, partition=partition
        )

    found = defaultdict(list)
    for partition in range(PARTITIONS):
        for value in committed_values(quick_bootstrap, name, partition):
            assert value is not None
            key, amount, size = value.decode().split()
            found[key].append((int(amount), int(size)))
    for key, moves in found.items():
        assert len(moves) == moves[0][1], f"{key} is there in part: {moves}"
        assert sum(amount for amount, _ in moves) == 0
    said = producers.said()
    assert [words for words in said if words[0] not in ("committed", "aborted")] == []
    committed = {words[1] for words in said if words[0] == "committed"}
    aborted = {words[1] for words in said if words[0] == "aborted"}
    assert committed <= set(found), "a commit was acknowledged and is lost"
    assert not aborted & set(found), "an abort was acknowledged and is seen"
    assert aborted
