"""A mirror whose work is shared, with Apache Kafka as its target: shards are fenced there, too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from tests.system.mirroring import (
    Here,
    cluster_id,
    copy_in_rounds,
    create,
    mirror,
    read,
    send,
    some_shapes,
)

from barnabas.mirror.tasks import CopyResult, CopyTask, copy_shards

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

PARTITIONS = 3


class Twice(Here):
    """Runs every task twice at once: one of them is fenced."""

    async def run(self, tasks: Sequence[CopyTask]) -> list[CopyResult]:
        self.tasks += tasks
        ran = [task for task in tasks for _ in range(2)]
        return list(await asyncio.gather(*(copy_shards(task) for task in ran)))


def test_neither_twins_nor_late_tasks_repeat_a_record(
    apache_bootstrap: str, barnabas_bootstrap: str, name: str
) -> None:
    source, target = barnabas_bootstrap, apache_bootstrap
    create(source, name, PARTITIONS)
    sent = {index: some_shapes(Random(index), 600) for index in range(PARTITIONS)}

    def send_part(number: int) -> None:
        for index, shapes in sent.items():
            send(source, name, index, shapes[200 * number : 200 * number + 200])

    runner = Twice()
    send_part(0)
    copy_in_rounds((source, target), name, runner)
    send_part(1)
    mirror(source, target, "--topics", name, "--name", name)  # which takes the mirror over
    for task in runner.tasks:
        further = {
            shard: tuple(replace(each, end=400) for each in copies)
            for shard, copies in task.shards.items()
        }
        result = asyncio.run(copy_shards(replace(task, shards=further)))
        assert [failure.fenced for failure in result.failures] == [True]
    send_part(2)
    copy_in_rounds((source, target), name, Here())
    source_id = cluster_id(source)
    for index, shapes in sent.items():
        copied = read(target, name, index, source_id)
        assert copied.origins == list(range(600))
        assert copied.shapes == shapes
