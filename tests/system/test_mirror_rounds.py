"""Mirrors whose records are moved by other processes: none of them can spoil the copy.

The processes are plain ones here: what Spark makes of errands is in test_mirror_spark.py.
"""

from __future__ import annotations

import asyncio
import pickle
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.system.mirroring import (
    Here,
    closing,
    cluster_id,
    copy_in_rounds,
    create,
    in_rounds,
    mirror,
    read,
    send,
    some_shapes,
)

from barnabas import KafkaAdminClient, TopicPartition
from barnabas.aio import AIOKafkaAdminClient, AIOKafkaProducer
from barnabas.mirror.clients import Side
from barnabas.mirror.errands import Errand, Outcome, run_lanes
from barnabas.mirror.positions import TOPIC_PREFIX
from barnabas.mirror.selection import Selection
from barnabas.model.errors import RetriableError
from barnabas.testing import Cluster

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
PARTITIONS = 3


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[str, str]]:
    """A source and a target for all tests of this module; each has topics of its own."""
    with Cluster() as source, Cluster() as target:
        yield source.bootstrap, target.bootstrap


class Lost(RetriableError):
    """A process died."""


class Processes(Here):
    """Runs each errand in a process; the first ones die before given steps."""

    def __init__(self, steps: Sequence[int] = ()) -> None:
        super().__init__()
        self.deaths = 0
        self._steps = iter(steps)

    async def run(self, errands: Sequence[Errand]) -> list[Outcome]:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(self._run(errand)) for errand in errands]
        outcomes = [task.result() for task in running]
        if lost := outcomes.count(None):
            self.deaths += lost
            raise Lost("a process died")
        return [outcome for outcome in outcomes if outcome is not None]

    async def _run(self, errand: Errand) -> Outcome | None:
        words = [sys.executable, "-m", "tests.system.errand", str(next(self._steps, 0))]
        process = await asyncio.create_subprocess_exec(
            *words, cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await process.communicate(pickle.dumps(errand))
        if process.returncode == -signal.SIGKILL:
            return None
        assert process.returncode == 0
        outcome: Outcome = pickle.loads(said)
        return outcome


def fill(bootstrap: str, topic: str, seed: int, count: int) -> list[list[Any]]:
    """Write records to each partition, and return them."""
    sent = [some_shapes(Random(seed * 10 + index), count) for index in range(PARTITIONS)]
    for index, shapes in enumerate(sent):
        send(bootstrap, topic, index, shapes)
    return sent


def assert_copied(clusters: tuple[str, str], topic: str, *sent: list[list[Any]]) -> None:
    source_id = cluster_id(clusters[0])
    for index in range(PARTITIONS):
        shapes = [shape for part in sent for shape in part[index]]
        copied = read(clusters[1], topic, index, source_id)
        assert copied.origins == list(range(len(shapes)))
        assert copied.shapes == shapes


def test_a_process_that_dies_before_any_step_neither_loses_nor_repeats(
    clusters: tuple[str, str],
) -> None:
    create(clusters[0], "lost", PARTITIONS)
    sent, deaths = [], 0
    # Two processes have three lanes: start, begin, records, positions, marks, commit, stop of each.
    for number, steps in enumerate([(1, 5), (2, 6), (3, 7), (4, 8), (9, 10), (11, 12), (0, 13)]):
        sent.append(fill(clusters[0], "lost", number, 60))
        runner = Processes(steps)
        done = copy_in_rounds(clusters, "lost", runner)
        deaths += runner.deaths
        assert done.progress.lag == 0
        assert done.progress.restarts == bool(runner.deaths)
    assert deaths >= 8
    assert_copied(clusters, "lost", *sent)


def test_engines_take_over_from_each_other(clusters: tuple[str, str]) -> None:
    create(clusters[0], "turns", PARTITIONS)
    sent = []
    for number in range(4):
        sent.append(fill(clusters[0], "turns", number, 50))
        if number % 2:
            done = copy_in_rounds(clusters, "turns", Here())
            assert (done.progress.records, done.progress.lag) == (50 * PARTITIONS, 0)
        else:
            report = mirror(*clusters, "--topics", "turns", "--name", "turns")
            assert (report["records"], report["lag"]) == (50 * PARTITIONS, 0)
    assert_copied(clusters, "turns", *sent)


def test_nothing_is_done_twice_when_an_errand_is_run_twice(clusters: tuple[str, str]) -> None:
    create(clusters[0], "twice", PARTITIONS)
    sent = [fill(clusters[0], "twice", 0, 200)]

    class Twice(Here):
        async def run(self, errands: Sequence[Errand]) -> list[Outcome]:
            ran = [errand for errand in errands for _ in range(2)]
            outcomes = await asyncio.gather(*(run_lanes(errand) for errand in ran))
            return list(outcomes)

    done = copy_in_rounds(clusters, "twice", Twice())
    assert done.progress.records == 200 * PARTITIONS
    assert_copied(clusters, "twice", *sent)


def test_an_errand_of_an_earlier_session_writes_nothing(clusters: tuple[str, str]) -> None:
    create(clusters[0], "stale", PARTITIONS)
    sent = [fill(clusters[0], "stale", 0, 30)]
    runner = Here()
    copy_in_rounds(clusters, "stale", runner)
    sent.append(fill(clusters[0], "stale", 1, 30))
    mirror(*clusters, "--topics", "stale", "--name", "stale")  # which takes the mirror over
    for errand in runner.errands:
        further = {
            lane: tuple(replace(each, end=60) for each in stretches)
            for lane, stretches in errand.lanes.items()
        }
        outcome = asyncio.run(run_lanes(replace(errand, lanes=further)))
        assert [failure.fenced for failure in outcome.failures] == [True]
        assert outcome.records == 0
    assert_copied(clusters, "stale", *sent)


def test_an_errand_that_was_about_to_commit_is_shut_out(
    clusters: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    create(clusters[0], "slow", PARTITIONS)
    sent = [fill(clusters[0], "slow", 0, 30)]
    runner = Here()
    copy_in_rounds(clusters, "slow", runner)
    sent.append(fill(clusters[0], "slow", 1, 30))
    commit = AIOKafkaProducer.commit_transaction

    async def run() -> Outcome:
        [errand] = [each for each in runner.errands if len(each.lanes) == 1]
        [(lane, stretches)] = errand.lanes.items()
        longer = {lane: tuple(replace(each, end=60) for each in stretches)}
        waiting, released = asyncio.Event(), asyncio.Event()

        async def commit_late(producer: AIOKafkaProducer) -> None:
            waiting.set()
            await released.wait()
            await commit(producer)

        monkeypatch.setattr(AIOKafkaProducer, "commit_transaction", commit_late)
        slow = asyncio.create_task(run_lanes(replace(errand, lanes=longer)))
        await waiting.wait()  # it has written, and read that the mirror was its own
        await asyncio.to_thread(mirror, *clusters, "--topics", "slow", "--name", "slow")
        released.set()
        return await slow

    outcome = asyncio.run(run())
    assert [failure.fenced for failure in outcome.failures] == [True]
    assert_copied(clusters, "slow", *sent)


def test_marks_that_the_broker_forgot_are_written_anew(clusters: tuple[str, str]) -> None:
    create(clusters[0], "forgot", PARTITIONS)
    sent = [fill(clusters[0], "forgot", 0, 30)]

    class Forgetful(Here):
        """Runs one errand of the first round, after which the group is gone."""

        async def run(self, errands: Sequence[Errand]) -> list[Outcome]:
            if self.errands:
                return await super().run(errands)
            assert len(errands) == 2
            outcomes = await super().run(errands[:1])
            async with AIOKafkaAdminClient(bootstrap_servers=clusters[1]) as admin:
                await admin.delete_consumer_groups([TOPIC_PREFIX + "forgot"])
            return [*outcomes, Outcome()]

    done = copy_in_rounds(clusters, "forgot", Forgetful())
    assert (done.progress.records, done.progress.restarts) == (30 * PARTITIONS, 0)
    assert_copied(clusters, "forgot", *sent)


def test_errands_that_never_begin_do_not_keep_a_mirror_that_is_stopped(
    clusters: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    create(clusters[0], "waiting", PARTITIONS)
    sent = [fill(clusters[0], "waiting", 0, 30)]
    monkeypatch.setattr("barnabas.mirror.rounds.LEAVE_MS", 50.0)

    class Full(Here):
        """Has room for nothing, until it is told that nobody waits any more."""

        asked, given_up = asyncio.Event(), asyncio.Event()

        async def run(self, errands: Sequence[Errand]) -> list[Outcome]:
            self.asked.set()
            await self.given_up.wait()
            raise Lost("given up")

        def cancel(self) -> None:
            self.given_up.set()

    async def stop_it() -> None:
        runner = Full()
        running = asyncio.create_task(in_rounds(clusters, "waiting", runner).run())
        await runner.asked.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert runner.given_up.is_set()

    asyncio.run(stop_it())
    copy_in_rounds(clusters, "waiting", Here())
    assert_copied(clusters, "waiting", *sent)


def test_what_belongs_to_a_mirror_is_no_readers_group(clusters: tuple[str, str]) -> None:
    from barnabas.mirror.group_offsets import translate_groups

    create(clusters[0], "marked", PARTITIONS)
    fill(clusters[0], "marked", 0, 5)
    copy_in_rounds(clusters, "marked", Here())
    with closing(KafkaAdminClient(bootstrap_servers=clusters[1])) as admin:
        marks = admin.list_consumer_group_offsets(TOPIC_PREFIX + "marked")
    assert marks[TopicPartition("marked", 0)].offset == 5
    target, source = [Side({"bootstrap.servers": each}) for each in clusters]
    found = asyncio.run(
        translate_groups(source, target, Selection([".*"]), [".*marked"], dry_run=True)
    )
    assert found == []
