"""What a broker does by the clock: checkpoints, timed flushes, forgotten producers."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.broker.serving import Serving, batch_of, create_topic, produce, wait_for

from barnabas.log.directory import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_checkpoints(tmp_path: Path) -> None:
    """High watermarks, log starts and recovery points are written down while running."""
    options = {"replica.high.watermark.checkpoint.interval.ms": 20}
    with Serving(tmp_path, options) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        for _ in range(3):
            produce(wire, "t", batch_of(["x"]))
        wait_for(lambda: "t 0 3" in lines_of(tmp_path / HIGH_WATERMARKS), "3 is written down")
        wanted = DeleteRecordsPartition(partition_index=0, offset=2)
        wire.ask(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[wanted])]))
        wait_for(lambda: "t 0 2" in lines_of(tmp_path / LOG_STARTS), "the start is written down")
        assert "t 0 0" in lines_of(tmp_path / RECOVERY_POINTS), "nothing was flushed"


def test_turns_do_not_overlap(tmp_path: Path) -> None:
    """Checkpoints that take longer than their interval are not written twice at a time."""
    options = {"replica.high.watermark.checkpoint.interval.ms": 5}
    with Serving(tmp_path, options) as serving:
        under_way, most, turns = 0, 0, 0

        async def write() -> None:
            nonlocal under_way, most, turns
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0.02)
            under_way -= 1
            turns += 1

        serving.broker.logs.write_checkpoints = write  # type: ignore[method-assign]
        wait_for(lambda: turns >= 3, "three turns are over")
        assert most == 1


def test_timed_flushes(tmp_path: Path) -> None:
    """flush.ms has a log flushed when its time has come, and only that one."""
    options = {"log.flush.scheduler.interval.ms": 10, "log.flush.interval.ms": 2**63 - 1}
    with Serving(tmp_path, options) as serving, serving.connect() as wire:
        create_topic(wire, "timed", configs={"flush.ms": "20"})
        create_topic(wire, "untimed")
        for name in ("timed", "untimed"):
            produce(wire, name, batch_of(["x"]))
        logs = {name: serving.broker.partitions[name, 0].log for name in ("timed", "untimed")}
        serving.wait_inside(lambda: logs["timed"].recovery_point == 1, "it is flushed")
        assert logs["untimed"].recovery_point == 0


def test_a_failing_task_comes_back(tmp_path: Path) -> None:
    """A sweep that fails once is made again at its next turn."""
    with Serving(tmp_path, {"connections.max.idle.ms": 40}) as serving:
        original = serving.broker.parts.network.sweep
        calls = []

        def sweep() -> None:
            calls.append(len(calls))
            if len(calls) == 1:
                raise ZeroDivisionError("once")
            original()

        serving.broker.parts.network.sweep = sweep  # type: ignore[method-assign]
        wait_for(lambda: len(calls) > 2, "it is called again")
        serving.expect_line("Exception in callback")


def test_old_producers_are_forgotten(tmp_path: Path) -> None:
    """A producer that was silent for producer.id.expiration.ms leaves no state."""
    options = {"producer.id.expiration.ms": 1}
    with Serving(tmp_path, options) as serving, serving.connect() as wire:
        create_topic(wire, "t")
        old = batch_of(["x"], producer_id=7, producer_epoch=0, base_sequence=0)
        assert produce(wire, "t", old).error_code == 0
        producers = serving.broker.partitions["t", 0].log.producers
        assert len(list(producers)) == 1
        serving.inside(serving.broker.parts.housekeeping._expire_producers)
        assert list(producers) == []
