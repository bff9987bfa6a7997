"""Mirrors whose records are moved by other processes: none of them can spoil the copy.

The processes are plain ones here: what Spark makes of tasks is in test_mirror_spark.py.
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
from barnabas.mirror.client_options import ClientOptions
from barnabas.mirror.positions import TOPIC_PREFIX
from barnabas.mirror.replication_policy import TopicFilter
from barnabas.mirror.tasks import CopyResult, CopyTask, copy_shards
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
    """Runs each task in a process; the first ones die before given steps."""

    def __init__(self, steps: Sequence[int] = ()) -> None:
        super().__init__()
        self.deaths = 0
        self._steps = iter(steps)

    async def run(self, tasks: Sequence[CopyTask]) -> list[CopyResult]:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(self._run(task)) for task in tasks]
        results = [task.result() for task in running]
        if lost := results.count(None):
            self.deaths += lost
            raise Lost("a process died")
        return [result for result in results if result is not None]

    async def _run(self, task: CopyTask) -> CopyResult | None:
        words = [sys.executable, "-m", "tests.system.mirror_task", str(next(self._steps, 0))]
        process = await asyncio.create_subprocess_exec(
            *words, cwd=ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await process.communicate(pickle.dumps(task))
        if process.returncode == -signal.SIGKILL:
            return None
        assert process.returncode == 0
        result: CopyResult = pickle.loads(said)
        return result


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
    # Two processes have three shards: start, begin, records, positions, checkpoints, commit, stop
    # of each.
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


def test_nothing_is_done_twice_when_a_task_is_run_twice(clusters: tuple[str, str]) -> None:
    create(clusters[0], "twice", PARTITIONS)
    sent = [fill(clusters[0], "twice", 0, 200)]

    class Twice(Here):
        async def run(self, tasks: Sequence[CopyTask]) -> list[CopyResult]:
            ran = [task for task in tasks for _ in range(2)]
            results = await asyncio.gather(*(copy_shards(task) for task in ran))
            return list(results)

    done = copy_in_rounds(clusters, "twice", Twice())
    assert done.progress.records == 200 * PARTITIONS
    assert_copied(clusters, "twice", *sent)


def test_a_task_of_an_earlier_session_writes_nothing(clusters: tuple[str, str]) -> None:
    create(clusters[0], "stale", PARTITIONS)
    sent = [fill(clusters[0], "stale", 0, 30)]
    runner = Here()
    copy_in_rounds(clusters, "stale", runner)
    sent.append(fill(clusters[0], "stale", 1, 30))
    mirror(*clusters, "--topics", "stale", "--name", "stale")  # which takes the mirror over
    for task in runner.tasks:
        further = {
            shard: tuple(replace(each, end=60) for each in copies)
            for shard, copies in task.shards.items()
        }
        result = asyncio.run(copy_shards(replace(task, shards=further)))
        assert [failure.fenced for failure in result.failures] == [True]
        assert result.records == 0
    assert_copied(clusters, "stale", *sent)


def test_a_task_that_was_about_to_commit_is_fenced(
    clusters: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    create(clusters[0], "slow", PARTITIONS)
    sent = [fill(clusters[0], "slow", 0, 30)]
    runner = Here()
    copy_in_rounds(clusters, "slow", runner)
    sent.append(fill(clusters[0], "slow", 1, 30))
    commit = AIOKafkaProducer.commit_transaction

    async def run() -> CopyResult:
        [task] = [each for each in runner.tasks if len(each.shards) == 1]
        [(shard, copies)] = task.shards.items()
        longer = {shard: tuple(replace(each, end=60) for each in copies)}
        waiting, released = asyncio.Event(), asyncio.Event()

        async def commit_late(producer: AIOKafkaProducer) -> None:
            waiting.set()
            await released.wait()
            await commit(producer)

        monkeypatch.setattr(AIOKafkaProducer, "commit_transaction", commit_late)
        slow = asyncio.create_task(copy_shards(replace(task, shards=longer)))
        await waiting.wait()  # it has written, and read that the mirror was its own
        await asyncio.to_thread(mirror, *clusters, "--topics", "slow", "--name", "slow")
        released.set()
        return await slow

    result = asyncio.run(run())
    assert [failure.fenced for failure in result.failures] == [True]
    assert_copied(clusters, "slow", *sent)


def test_checkpoints_that_expired_are_written_again(clusters: tuple[str, str]) -> None:
    create(clusters[0], "forgot", PARTITIONS)
    sent = [fill(clusters[0], "forgot", 0, 30)]

    class Forgetful(Here):
        """Runs one task of the first round, after which the group is gone."""

        async def run(self, tasks: Sequence[CopyTask]) -> list[CopyResult]:
            if self.tasks:
                return await super().run(tasks)
            assert len(tasks) == 2
            results = await super().run(tasks[:1])
            async with AIOKafkaAdminClient(bootstrap_servers=clusters[1]) as admin:
                await admin.delete_consumer_groups([TOPIC_PREFIX + "forgot"])
            return [*results, CopyResult()]

    done = copy_in_rounds(clusters, "forgot", Forgetful())
    assert (done.progress.records, done.progress.restarts) == (30 * PARTITIONS, 0)
    assert_copied(clusters, "forgot", *sent)


def test_tasks_that_never_begin_do_not_keep_a_mirror_that_is_stopped(
    clusters: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    create(clusters[0], "waiting", PARTITIONS)
    sent = [fill(clusters[0], "waiting", 0, 30)]
    monkeypatch.setattr("barnabas.mirror.rounds.SHUTDOWN_MS", 50.0)

    class Full(Here):
        """Has room for nothing, until it is cancelled."""

        asked, given_up = asyncio.Event(), asyncio.Event()

        async def run(self, tasks: Sequence[CopyTask]) -> list[CopyResult]:
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


def test_what_belongs_to_a_mirror_is_not_translated(clusters: tuple[str, str]) -> None:
    from barnabas.mirror.group_offsets import translate_groups

    create(clusters[0], "marked", PARTITIONS)
    fill(clusters[0], "marked", 0, 5)
    copy_in_rounds(clusters, "marked", Here())
    with closing(KafkaAdminClient(bootstrap_servers=clusters[1])) as admin:
        checkpoints = admin.list_consumer_group_offsets(TOPIC_PREFIX + "marked")
    assert checkpoints[TopicPartition("marked", 0)].offset == 5
    target, source = [ClientOptions({"bootstrap.servers": each}) for each in clusters]
    found = asyncio.run(
        translate_groups(source, target, TopicFilter([".*"]), [".*marked"], dry_run=True)
    )
    assert found == []
