"""Topics forked from others: the same records at once, and from then on a life of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.admin import NewTopic as ConfluentTopic
from tests.unit.broker.serving import (
    TIMESTAMP,
    Serving,
    Wire,
    batch_of,
    create_topic,
    fetch,
    metadata,
    produce,
    wait_for,
)

from barnabas.model.error_codes import ErrorCode
from barnabas.records.batch import iterate, read_headers
from barnabas.records.builder import build_batch
from barnabas.replication.role import Role
from barnabas.testing import Cluster
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

SMALL = {"segment.bytes": "500"}


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with Serving(tmp_path, {"log.segment.delete.delay.ms": 0}) as running:
        yield running


@pytest.fixture
def wire(serving: Serving) -> Iterator[Wire]:
    with serving.connect() as connected:
        yield connected


def fork(wire: Wire, source: str, target: str, partitions: int = -1, **more: object) -> Any:
    """Fork a topic and return the result."""
    configs = {"barnabas.fork.source": source}
    configs |= {f"barnabas.fork.{name}": str(value) for name, value in more.items()}
    topic = CreatableTopic(
        name=target,
        num_partitions=partitions,
        replication_factor=-1,
        configs=[CreatableTopicConfig(name=n, value=v) for n, v in configs.items()],
    )
    (result,) = wire.ask(CreateTopicsRequest(topics=[topic]), 7).topics
    return result


def fill(wire: Wire, topic: str, numbers: range, partition: int = 0) -> None:
    for number in numbers:
        row = batch_of([f"{topic} {number}"])
        assert produce(wire, topic, row, partition=partition, acks=-1).error_code == 0


def values(wire: Wire, topic: str, partition: int = 0, **more: int) -> list[str]:
    found: list[str] = []
    offset = 0
    while True:
        result = fetch(wire, topic, offset, partition=partition, **more)
        assert result.error_code == 0, ErrorCode.of(result.error_code)
        data = bytes(result.records or b"")
        if not data:
            return found
        found += [str((r.value or b"").decode()) for r in iterate(data)]
        offset = read_headers(data)[-1].next_offset


def of(topic: str, count: int) -> list[str]:
    return [f"{topic} {number}" for number in range(count)]


def segments(tmp_path: Path, topic: str) -> list[Path]:
    return sorted((tmp_path / f"{topic}-0").glob("*.log"))


def delete(wire: Wire, topic: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=60_000)
    assert wire.ask(request, 6).responses[0].error_code == 0


def test_both_live_on(serving: Serving, wire: Wire, tmp_path: Path) -> None:
    """Neither sees what the other appends, before and after a restart and a crash."""
    source_id = create_topic(wire, "s", configs=SMALL)
    fill(wire, "s", range(20))
    result = fork(wire, "s", "f")
    assert result.error_code == 0, result
    assert result.num_partitions == 1
    assert result.topic_id not in (source_id, bytes(16))
    assert {c.name: c.value for c in result.configs}["segment.bytes"] == "500"
    shared = [path for path in segments(tmp_path, "f") if os.stat(path).st_nlink == 2]
    assert len(shared) > 2
    assert values(wire, "f") == of("s", 20)
    fill(wire, "s", range(20, 30))
    for number in range(7):
        assert produce(wire, "f", batch_of([f"f {number}"])).base_offset == 20 + number
    for again in (serving.stop, serving.kill, None):
        with serving.connect() as other:
            assert values(other, "s")[:20] == of("s", 20)
            assert values(other, "f")[:20] == of("s", 20)
            if again is serving.stop:
                assert values(other, "s") == of("s", 30)
                assert values(other, "f") == of("s", 20) + of("f", 7)
            assert set(values(other, "f")[20:]) <= set(of("f", 7))
            assert set(values(other, "s")[20:]) <= set(of("s", 30))
        if again is not None:
            again()
            serving.lines.clear()
            serving.start()
    assert not (tmp_path / "f-0" / "fork.pending").exists()
    serving.lines.clear()


@pytest.mark.parametrize(("gone", "kept"), [("s", "f"), ("f", "s")])
def test_one_is_deleted(serving: Serving, wire: Wire, tmp_path: Path, gone: str, kept: str) -> None:
    create_topic(wire, "s", configs=SMALL)
    fill(wire, "s", range(20))
    assert fork(wire, "s", "f").error_code == 0
    delete(wire, gone)
    wait_for(lambda: not list(tmp_path.glob(f"{gone}-0*")), "the files are removed")
    assert values(wire, kept) == of("s", 20)
    fill(wire, kept, range(20, 22))
    serving.stop()
    serving.start()
    with serving.connect() as again:
        assert values(again, kept)[:20] == of("s", 20)
        assert len(values(again, kept)) == 22
        assert fork(again, kept, "third").error_code == 0
        assert values(again, "third") == values(again, kept)


def test_end_offsets(wire: Wire, tmp_path: Path) -> None:
    """A partition ends before its offset; only the segment that it cuts is copied."""
    create_topic(wire, "s", partitions=2, configs=SMALL)
    fill(wire, "s", range(20), 0)
    fill(wire, "s", range(5), 1)
    for end in range(21):
        name = f"f{end}"
        assert fork(wire, "s", name, offsets=f"0:{end}").error_code == 0
        assert values(wire, name, 0) == of("s", end)
        assert values(wire, name, 1) == of("s", 5)
        copied = [
            p for p in segments(tmp_path, name) if p.stat().st_nlink == 1 and p.stat().st_size
        ]
        assert len(copied) <= 1
        assert produce(wire, name, batch_of(["next"])).base_offset == end
        assert values(wire, name, 0) == [*of("s", end), "next"]


def test_end_inside_a_batch(wire: Wire) -> None:
    """A batch is whole or absent."""
    create_topic(wire, "s")
    for _ in range(2):
        assert produce(wire, "s", batch_of(["a", "b", "c"])).error_code == 0
    assert fork(wire, "s", "f", offsets="0:5").error_code == 0
    assert values(wire, "f") == ["a", "b", "c"]


def test_end_time(wire: Wire) -> None:
    create_topic(wire, "s")
    for number in range(5):
        values_of_batch = ["x"] * number + [f"at {number}"]  # ends at TIMESTAMP + number
        assert produce(wire, "s", batch_of(values_of_batch)).error_code == 0
    assert fork(wire, "s", "f", at=TIMESTAMP + 2).error_code == 0
    assert values(wire, "f") == ["at 0", "x", "at 1"]
    assert fork(wire, "s", "g", at=TIMESTAMP + 100).error_code == 0
    assert values(wire, "g") == values(wire, "s")


def test_epochs_and_producers_go_on(serving: Serving, wire: Wire) -> None:
    """A duplicate of the source's last batch is one in the fork too; epochs never go back."""
    create_topic(wire, "s")
    serving.stop()
    serving.start()
    with serving.connect() as wire:
        sent = batch_of(["a", "b"], producer_id=9, producer_epoch=0, base_sequence=0)
        assert produce(wire, "s", sent).base_offset == 0
        assert fork(wire, "s", "f").error_code == 0
        assert produce(wire, "f", sent).base_offset == 0
        more = batch_of(["c"], producer_id=9, producer_epoch=0, base_sequence=2)
        assert produce(wire, "f", more).base_offset == 2
        source, target = (metadata(wire, name).topics[0].partitions[0] for name in "sf")
        assert target.leader_epoch > source.leader_epoch > 0
    serving.kill()
    serving.start()
    with serving.connect() as again:
        # Nothing was flushed on demand: each of the two may have lost the end of what it had.
        source_kept, target_kept = values(again, "s"), values(again, "f")
        assert source_kept == ["a", "b"][: len(source_kept)]
        assert target_kept == ["a", "b", "c"][: len(target_kept)]
    serving.lines.clear()


def test_a_fork_is_where_the_records_of_its_source_are() -> None:
    with Cluster(brokers=3) as cluster:
        admin = AdminClient(cluster.client_options(style="librdkafka"))
        controller = admin.list_topics(timeout=60).controller_id
        source = ConfluentTopic("source", 4, replica_assignment=[[controller]] * 4)
        admin.create_topics([source])["source"].result(60)
        producer = Producer(cluster.client_options(style="librdkafka"))
        for number in range(4):
            producer.produce("source", b"kept", partition=number)
        assert producer.flush(60) == 0
        new = ConfluentTopic("fork", -1, -1, config={"barnabas.fork.source": "source"})
        admin.create_topics([new])["fork"].result(60)
        found = admin.list_topics("fork", timeout=60).topics["fork"].partitions
        assert {each.leader for each in found.values()} == {controller}
        ends = {TopicPartition("fork", number): OffsetSpec.latest() for number in range(4)}
        answers = admin.list_offsets(ends).values()
        assert [each.result(60).offset for each in answers] == [1] * 4


def test_open_transactions(serving: Serving, wire: Wire) -> None:
    """Without an end they are left out; an end in the middle of one aborts it in the fork."""
    create_topic(wire, "s")
    assert produce(wire, "s", batch_of(["plain"])).error_code == 0
    open_batch = batch_of(
        ["open"], producer_id=5, producer_epoch=0, base_sequence=0, transactional=True
    )
    source = serving.broker.partitions["s", 0]
    appended = serving.inside(lambda: source.append(open_batch, 1, 9, TIMESTAMP))
    assert appended.first_offset == 1
    assert fork(wire, "s", "f").error_code == 0
    assert values(wire, "f") == ["plain"]
    assert fork(wire, "s", "g", offsets="0:2").error_code == 0
    result = fetch(wire, "g", isolation_level=1)
    assert result.last_stable_offset == result.high_watermark == 3  # the marker is at 2
    assert [each.first_offset for each in result.aborted_transactions or []] == [1]
    assert fetch(wire, "s", isolation_level=1).last_stable_offset == 1


def test_records_are_deleted_from_one(serving: Serving, wire: Wire) -> None:
    create_topic(wire, "s", configs=SMALL)
    fill(wire, "s", range(20))
    partition = serving.broker.partitions["s", 0]
    serving.inside(lambda: partition.log.delete_records_before(7))
    assert fork(wire, "s", "f").error_code == 0
    forked = serving.broker.partitions["f", 0]
    assert serving.inside(lambda: forked.log.log_start_offset) == 7
    serving.inside(lambda: partition.log.delete_records_before(15))
    assert fetch(wire, "s", 7).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch(wire, "f", 7).error_code == 0


def test_truncation_leaves_the_other_alone(serving: Serving, wire: Wire) -> None:
    """A follower may have to take batches back: not from the file of another log."""
    create_topic(wire, "s", configs=SMALL)
    fill(wire, "s", range(20))
    assert fork(wire, "s", "f").error_code == 0
    partition = serving.broker.partitions["s", 0]
    log, own = partition.log, serving.broker.broker_id

    def follow_and_lead_again() -> None:
        epoch, other = partition.leader_epoch, own + 1
        partition.assume(Role(other, epoch + 1, (other,), (own, other)))
        log.truncate_to(8, TIMESTAMP)
        partition.assume(Role(own, epoch + 2, (own,), (own,)))

    serving.inside(follow_and_lead_again)
    assert serving.inside(lambda: log.log_end_offset) == 8
    for number in range(8, 12):
        assert produce(wire, "s", batch_of([f"new {number}"])).base_offset == number
    assert values(wire, "s") == [*of("s", 8), *(f"new {number}" for number in range(8, 12))]
    assert values(wire, "f") == of("s", 20)


def test_what_a_crash_leaves(serving: Serving, wire: Wire, tmp_path: Path) -> None:
    """A fork whose topic did not come to be is removed by the next start."""
    create_topic(wire, "s", configs=SMALL)
    fill(wire, "s", range(20))

    async def crash(_: object) -> None:
        raise KeyError("power is gone")

    serving.broker.topics._store.create = crash  # type: ignore[method-assign, assignment]
    serving.broker.forks.undo = lambda _: None  # type: ignore[method-assign]
    assert fork(wire, "s", "f").error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (tmp_path / "f-0" / "fork.pending").exists()
    serving.kill()
    serving.lines.clear()
    serving.start()
    serving.expect_line("removing an unfinished fork")
    wait_for(lambda: not list(tmp_path.glob("f-0*")), "nothing is left of it")
    with serving.connect() as again:
        assert metadata(again, "f").topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert set(values(again, "s")) <= set(of("s", 20))


def test_refusals(wire: Wire) -> None:
    create_topic(wire, "s", partitions=2)
    create_topic(wire, "taken")
    fill(wire, "taken", range(2))
    fill(wire, "s", range(3))
    assert fork(wire, "s", "taken").error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert fork(wire, "missing", "f").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert fork(wire, "s", "f", partitions=3).error_code == ErrorCode.INVALID_PARTITIONS
    assert fork(wire, "s", "f", offsets="0:4").error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert fork(wire, "s", "f", offsets="2:0").error_code == ErrorCode.INVALID_CONFIG
    assert fork(wire, "s", "f", offsets="zero").error_code == ErrorCode.INVALID_CONFIG
    assert fork(wire, "s", "f", offsets="0:1", at=5).error_code == ErrorCode.INVALID_CONFIG
    assert values(wire, "taken") == of("taken", 2)


def keyed(number: int) -> bytes:
    return build_batch([(TIMESTAMP, b"k%d" % (number % 5), b"v%d" % number)])


def by_key(wire: Wire, topic: str) -> tuple[int, dict[bytes | None, bytes | None]]:
    """Return how many records there are, and the newest value of each key."""
    found, position = [], 0
    while True:
        data = bytes(fetch(wire, topic, position).records or b"")
        headers = read_headers(data)
        if not headers:
            return len(found), {record.key: record.value for record in found}
        found += [record for record in iterate(data) if record.offset >= position]
        position = headers[-1].next_offset


def test_compaction_of_both(tmp_path: Path) -> None:
    """Each is compacted for itself; a fork of a compacted log, with its gaps, survives a crash."""
    options = {
        "log.cleaner.backoff.ms": 20,
        "log.flush.offset.checkpoint.interval.ms": 20,
        "log.cleaner.io.buffer.size": 4096,
    }
    compacted = {
        "cleanup.policy": "compact",
        "segment.bytes": "2000",
        "min.cleanable.dirty.ratio": "0.01",
        "file.delete.delay.ms": "0",
        "flush.messages": "1",
    }
    newest = {b"k%d" % key: b"v%d" % (395 + key) for key in range(5)}
    with Serving(tmp_path, options) as serving, serving.connect() as wire:
        create_topic(wire, "s", configs=compacted)
        for number in range(200):
            assert produce(wire, "s", keyed(number)).error_code == 0
        assert fork(wire, "s", "early").error_code == 0
        for number in range(200, 400):
            assert produce(wire, "s", keyed(number)).error_code == 0
        source = serving.broker.partitions["s", 0].log
        serving.wait_inside(lambda: source.cleaned_offset > 300, "most of it is compacted")
        assert fork(wire, "s", "late").error_code == 0
        forked = serving.broker.partitions["late", 0].log
        assert serving.inside(lambda: forked.cleaned_offset) > 300
        assert by_key(wire, "late")[1] == by_key(wire, "s")[1] == newest
        assert by_key(wire, "early")[1] == {b"k%d" % k: b"v%d" % (195 + k) for k in range(5)}
        delete(wire, "s")
        assert by_key(wire, "late")[1] == newest
        serving.kill()
        serving.start()
        with serving.connect() as again:
            assert by_key(again, "late")[1] == newest
            assert by_key(again, "early")[1] == {b"k%d" % k: b"v%d" % (195 + k) for k in range(5)}
            early = serving.broker.partitions["early", 0].log
            serving.wait_inside(lambda: early.cleaned_offset > 100, "the fork is compacted")
            count, values_of_keys = by_key(again, "early")
            assert count < 100
            assert values_of_keys == {b"k%d" % k: b"v%d" % (195 + k) for k in range(5)}
        serving.lines.clear()


def test_retention_of_one(tmp_path: Path) -> None:
    """Segments that retention takes from one are still the other's."""
    with Serving(tmp_path, {"log.retention.check.interval.ms": 20}) as serving:
        wire = serving.connect()
        keep = {"segment.bytes": "500", "file.delete.delay.ms": "0", "retention.ms": "-1"}
        create_topic(wire, "s", configs=keep)
        fill(wire, "s", range(20))
        short = CreatableTopic(
            name="f",
            num_partitions=-1,
            replication_factor=-1,
            configs=[
                CreatableTopicConfig(name="barnabas.fork.source", value="s"),
                CreatableTopicConfig(name="retention.ms", value="1000"),
            ],
        )
        (result,) = wire.ask(CreateTopicsRequest(topics=[short]), 7).topics
        assert result.error_code == 0, result
        forked = serving.broker.partitions["f", 0].log
        serving.wait_inside(lambda: forked.log_start_offset == 20, "all records are too old")
        wait_for(lambda: len(segments(tmp_path, "f")) == 1, "the files are removed")
        assert values(wire, "s") == of("s", 20)
        assert {path.stat().st_nlink for path in segments(tmp_path, "s")} == {1}
        assert produce(wire, "f", batch_of(["next"])).base_offset == 20
