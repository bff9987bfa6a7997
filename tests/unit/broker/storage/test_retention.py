"""A broker removes what its topics no longer want."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.broker.serving import Serving, Wire, create_topic, fetch, produce

from barnabas.model.error_codes import ErrorCode
from barnabas.records.batch import iterate
from barnabas.records.builder import build_batch

OPTIONS = {"log.retention.check.interval.ms": 20}


def put(wire: Wire, topic: str, at_ms: int, count: int = 1) -> None:
    for _ in range(count):
        result = produce(wire, topic, build_batch([(at_ms, b"k", b"v" * 100)]))
        assert result.error_code == 0, result


def test_old_segments_go_and_the_log_start_follows(tmp_path: Path) -> None:
    configs = {"segment.bytes": "1000", "retention.ms": "3600000", "file.delete.delay.ms": "0"}
    with Serving(tmp_path, OPTIONS) as serving:
        wire = serving.connect()
        create_topic(wire, "t", configs=configs)
        now_ms = serving.broker.now_ms()
        put(wire, "t", now_ms - 7_200_000, 20)
        put(wire, "t", now_ms, 20)
        log = serving.broker.partitions[("t", 0)].log
        # Several turns may be needed: only what is flushed and checkpointed is removed.
        serving.wait_inside(lambda: log.log_start_offset >= 14, "old segments are removed")
        start = serving.inside(lambda: log.log_start_offset)
        assert start <= 20
        assert fetch(wire, "t", 0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        data = bytes(fetch(wire, "t", start).records or b"")
        assert next(iter(iterate(data))).offset == start
        serving.wait_inside(
            lambda: (
                len(list((tmp_path / "t-0").glob("*.log"))) == len(log.segments)
                and not list((tmp_path / "t-0").glob("*.deleted"))
            ),
            "their files are gone",
        )
    with Serving(tmp_path, OPTIONS) as serving:
        log = serving.broker.partitions[("t", 0)].log
        assert (log.log_start_offset, log.log_end_offset) == (start, 40)


def test_all_of_a_log_can_go_and_offsets_go_on(tmp_path: Path) -> None:
    with Serving(tmp_path, OPTIONS) as serving:
        wire = serving.connect()
        create_topic(wire, "t", configs={"retention.ms": "600000"})
        put(wire, "t", serving.broker.now_ms() - 3_600_000, 3)
        log = serving.broker.partitions[("t", 0)].log
        serving.wait_inside(lambda: len(log.segments) == 1 and log.log_start_offset == 3, "all go")
        put(wire, "t", serving.broker.now_ms())
        data = bytes(fetch(wire, "t", 3).records or b"")
        assert [record.offset for record in iterate(data)] == [3]
        serving.kill()
        serving.start()
        log = serving.broker.partitions[("t", 0)].log
        assert log.log_start_offset == 3


def test_size_bounds_a_partition(tmp_path: Path) -> None:
    configs = {"segment.bytes": "1000", "retention.bytes": "3000"}
    with Serving(tmp_path, OPTIONS) as serving:
        wire = serving.connect()
        create_topic(wire, "t", configs=configs)
        put(wire, "t", serving.broker.now_ms(), 60)
        log = serving.broker.partitions[("t", 0)].log
        serving.wait_inside(lambda: log.size_bytes < 4200, "it is small again")
        assert serving.inside(lambda: log.size_bytes) >= 3000


def test_a_damaged_log_keeps_no_other_from_being_looked_at(tmp_path: Path) -> None:
    """Neither what is said of its times nor its batches can be read: it is told of, and kept."""
    configs = {"segment.bytes": "1000", "retention.ms": "3600000"}
    with Serving(tmp_path, {"log.retention.check.interval.ms": 3_600_000}) as serving:
        wire = serving.connect()
        for name in ("bad", "good"):
            create_topic(wire, name, configs=configs)
            put(wire, name, serving.broker.now_ms() - 7_200_000, 20)
        serving.stop()
        first = tmp_path / "bad-0" / f"{0:020d}.log"
        first.with_suffix(".timeindex").write_bytes(b"\xff" * 12)
        with first.open("r+b") as file:
            file.seek(16)
            file.write(b"\x07")
        serving.start()
        bad, good = (serving.broker.partitions[name, 0].log for name in ("bad", "good"))
        turn = serving.broker.parts.retention.turn()
        asyncio.run_coroutine_threadsafe(turn, serving.broker.loop).result(60)
        assert serving.inside(lambda: (bad.log_start_offset, good.log_start_offset)) == (0, 20)
        assert [line for line in serving.lines.of() if "bad-0: retention skipped" in line]
        serving.lines.clear()
