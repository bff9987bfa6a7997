"""A broker compacts its logs while it serves them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.broker.serving import Serving, Wire, create_topic, fetch, produce, records_of

from barnabas.model.ids import TopicPartition
from barnabas.records.batch import iterate, read_headers
from barnabas.records.builder import build_batch
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest

OPTIONS = {
    "log.cleaner.backoff.ms": 20,
    "log.flush.offset.checkpoint.interval.ms": 20,
    "log.cleaner.io.buffer.size": 4096,
}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "2000",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "0",
}


def put(wire: Wire, topic: str, *rows: tuple[bytes, bytes | None]) -> int:
    data = build_batch([(1_700_000_000_000, key, value) for key, value in rows])
    result = produce(wire, topic, data)
    assert result.error_code == 0, result
    return result.base_offset


def read_all(wire: Wire, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    found, position = [], 0
    while True:
        data = bytes(fetch(wire, topic, position).records or b"")
        headers = read_headers(data)
        if not headers:
            return found
        found += [(r.offset, r.key, r.value) for r in iterate(data) if r.offset >= position]
        position = headers[-1].next_offset


def cleaned(serving: Serving, topic: str) -> int:
    return serving.broker.partitions[(topic, 0)].log.cleaned_offset


def test_a_compacted_topic_shrinks_and_keeps_the_newest_values(tmp_path: Path) -> None:
    with Serving(tmp_path, OPTIONS) as serving:
        wire = serving.connect()
        create_topic(wire, "t", configs=COMPACTED)
        for number in range(400):
            put(wire, "t", (b"k%d" % (number % 5), b"v%d" % number))
        log = serving.broker.partitions[("t", 0)].log
        serving.wait_inside(lambda: log.cleaned_offset > 300, "most of it is compacted")
        found = read_all(wire, "t")
        newest = {b"k%d" % (number % 5): b"v%d" % number for number in range(395, 400)}
        assert {key: value for _, key, value in found} == newest
        assert len(found) < 200
        serving.wait_inside(
            lambda: not list((tmp_path / "t-0").glob("*.deleted")), "the old files are gone"
        )
    *_, line = (tmp_path / "cleaner-offset-checkpoint").read_text().splitlines()
    topic, partition, end = line.split()
    assert (topic, partition) == ("t", "0")
    assert int(end) > 300
    with Serving(tmp_path, OPTIONS) as serving:
        wire = serving.connect()
        assert {key: value for _, key, value in read_all(wire, "t")} == newest
        assert serving.inside(lambda: cleaned(serving, "t")) >= int(end)


def test_an_idle_log_is_compacted_after_an_unclean_start(tmp_path: Path) -> None:
    """Recovery leaves the recovery point where it was, and no append comes to move it."""
    serving = Serving(tmp_path, {**OPTIONS, "log.cleaner.enable": "false"}).start()
    wire = serving.connect()
    create_topic(wire, "t", configs=COMPACTED)
    for number in range(100):
        put(wire, "t", (b"k", b"v%d" % number))
    log = serving.broker.partitions[("t", 0)].log
    end = log.segments[-1].base_offset
    serving.wait_inside(lambda: log.recovery_point == end, "what the crash must not take")
    serving.kill()
    (tmp_path / "recovery-point-offset-checkpoint").unlink(missing_ok=True)
    with Serving(tmp_path, OPTIONS) as serving:
        log = serving.broker.partitions[("t", 0)].log
        serving.wait_inside(lambda: log.cleaned_offset == end, "it is compacted")
        assert read_all(serving.connect(), "t") == [(end - 1, b"k", b"v%d" % (end - 1))]


def test_consumers_pass_over_what_replicas_copy(tmp_path: Path) -> None:
    """The last batch of each producer stays as an empty header: many segments hold nothing else."""
    with Serving(tmp_path, OPTIONS) as serving:
        wire = serving.connect()
        create_topic(wire, "t", configs=COMPACTED)
        for number in range(300):
            identity = {"producer_id": 1000 + number, "producer_epoch": 0, "base_sequence": 0}
            data = build_batch([(1_700_000_000_000, b"k", b"v%d" % number)], **identity)
            assert produce(wire, "t", data).base_offset == number
        log = serving.broker.partitions[("t", 0)].log
        serving.wait_inside(
            lambda: log.cleaned_offset == log.segments[-1].base_offset, "all of it is compacted"
        )
        found = fetch(wire, "t", 0)
        first = records_of(found)[0]
        assert first.offset > 200
        copied, position = b"", 0
        while position < 300:
            copied += bytes(fetch(wire, "t", position, replica_id=1).records or b"")
            headers = read_headers(copied)
            position = headers[-1].next_offset
        assert [header.base_offset for header in headers] == list(range(300))
        assert [header.count for header in headers[: first.offset]] == [0] * first.offset
        assert bytes(found.records or b"") in copied


def test_records_without_a_key_are_refused(tmp_path: Path) -> None:
    with Serving(tmp_path, OPTIONS) as serving:
        wire = serving.connect()
        create_topic(wire, "t", configs=COMPACTED)
        result = produce(wire, "t", build_batch([(1_700_000_000_000, None, b"v")]))
        assert result.error_code == 87


def test_a_topic_that_becomes_compacted_is_compacted(tmp_path: Path) -> None:
    with Serving(tmp_path, OPTIONS) as serving:
        wire = serving.connect()
        create_topic(wire, "t", configs={**COMPACTED, "cleanup.policy": "delete"})
        for number in range(100):
            put(wire, "t", (b"k", b"v%d" % number))
        assert len(read_all(wire, "t")) == 100
        log = serving.broker.partitions[("t", 0)].log
        change = log.options.with_overrides({"cleanup.policy": "compact"})
        serving.inside(lambda: log.configure(change))
        serving.wait_inside(lambda: log.cleaned_offset > 50, "it is compacted")
        assert len(read_all(wire, "t")) < 60


def test_deleting_a_topic_stops_its_compaction(tmp_path: Path) -> None:
    options = {**OPTIONS, "log.cleaner.io.max.bytes.per.second": 1}
    with Serving(tmp_path, options) as serving:
        wire = serving.connect()
        create_topic(wire, "t", configs=COMPACTED)
        for number in range(100):
            put(wire, "t", (b"k", b"v%d" % number))
        log = serving.broker.partitions[("t", 0)].log
        serving.wait_inside(lambda: log.compacting, "its compaction has begun")
        wire.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=60_000), 5)
        assert serving.inside(lambda: log.compacting) is False
        create_topic(wire, "t", configs=COMPACTED)
        put(wire, "t", (b"k", b"again"))
        assert read_all(wire, "t") == [(0, b"k", b"again")]
        names = {path.name for path in (tmp_path / "t-0").iterdir()}
        assert not [name for name in names if name.endswith((".cleaned", ".swap"))]


def test_a_log_that_cannot_be_compacted_is_left_alone_and_served(tmp_path: Path) -> None:
    with Serving(tmp_path, {**OPTIONS, "log.cleaner.enable": "true"}) as serving:
        wire = serving.connect()
        lazy = {**COMPACTED, "min.cleanable.dirty.ratio": "1"}
        create_topic(wire, "t", configs=lazy)
        for number in range(100):
            put(wire, "t", (b"k", b"v%d" % number))
        log = serving.broker.partitions[("t", 0)].log
        path = tmp_path / "t-0" / f"{0:020d}.log"
        with path.open("r+b") as file:
            file.seek(70)
            file.write(b"\xff\xff")
        change = log.options.with_overrides({"min.cleanable.dirty.ratio": "0.1"})
        serving.inside(lambda: log.configure(change))
        serving.expect_line("compaction failed, not compacted until restart")
        uncleanable = serving.broker.parts.compaction.cleaner.uncleanable
        serving.wait_inside(lambda: list(uncleanable) == [TopicPartition("t", 0)], "it is noted")
        [noted] = serving.inside(lambda: serving.broker.journal.ring.about("t-0")[-1:])
        assert noted.event == "compaction.failed"
        assert noted.cause in ("damaged", "storage")
        assert noted.data["broker"] == 0
        assert noted.data["reason"]
        assert put(wire, "t", (b"k", b"more")) == 100
        assert fetch(wire, "t", 100).error_code == 0


@pytest.mark.parametrize("threads", [0, 3])
def test_as_many_cleaners_as_the_options_say(tmp_path: Path, threads: int) -> None:
    with Serving(tmp_path, {**OPTIONS, "log.cleaner.threads": threads}) as serving:
        assert serving.inside(lambda: len(serving.broker.parts.compaction._workers)) == threads
    with Serving(tmp_path, {**OPTIONS, "log.cleaner.enable": "false"}) as serving:
        assert serving.inside(lambda: len(serving.broker.parts.compaction._workers)) == 0


def test_the_rate_is_kept(tmp_path: Path) -> None:
    with Serving(tmp_path, {**OPTIONS, "log.cleaner.io.max.bytes.per.second": 1000}) as serving:
        cleaning = serving.broker.parts.compaction

        async def pay() -> float:
            loop = asyncio.get_running_loop()
            started = loop.time()
            await cleaning._pay(30, lambda: False)
            await cleaning._pay(20, lambda: False)
            await cleaning._pay(10**9, lambda: True)
            return loop.time() - started

        took = asyncio.run_coroutine_threadsafe(pay(), serving.broker.loop).result(60)
        # The clock may count whole milliseconds, and their difference be a rounding error short.
        assert round(took, 9) >= 0.05
