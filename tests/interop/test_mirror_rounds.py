"""A mirror whose work is shared, with Apache Kafka as its target: lanes are fenced there, too."""

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

from barnabas.mirror.errands import Errand, Outcome, run_lanes

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

PARTITIONS = 3


class Twice(Here):
    """Runs every errand twice at once: one of them is shut out."""

    async def run(self, errands: Sequence[Errand]) -> list[Outcome]:
        self.errands += errands
        ran = [errand for errand in errands for _ in range(2)]
        return list(await asyncio.gather(*(run_lanes(errand) for errand in ran)))


def test_neither_twins_nor_late_errands_repeat_a_record(
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
    for errand in runner.errands:
        further = {
            lane: tuple(replace(each, end=400) for each in stretches)
            for lane, stretches in errand.lanes.items()
        }
        outcome = asyncio.run(run_lanes(replace(errand, lanes=further)))
        assert [failure.fenced for failure in outcome.failures] == [True]
    send_part(2)
    copy_in_rounds((source, target), name, Here())
    source_id = cluster_id(source)
    for index, shapes in sent.items():
        copied = read(target, name, index, source_id)
        assert copied.origins == list(range(600))
        assert copied.shapes == shapes
