"""Mirrors between real brokers: whatever happens to the process, the target has each record once.

`BARNABAS_CHAOS_SEEDS` says how many seeded series of kills are run (3 unless it is set).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from tests.system.mirroring import (
    DEADLINE_S,
    closing,
    cluster_id,
    command,
    create,
    mirror,
    own_option,
    read,
    running,
    send,
    some_shapes,
    written,
)

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from barnabas.testing import Cluster

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

SEEDS = int(os.environ.get("BARNABAS_CHAOS_SEEDS", "3"))
PARTITIONS = 3
RECORDS = 12_000
KILLS = 4


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[str, str]]:
    """A source and a target for all tests of this module; each has topics of its own."""
    with Cluster() as source, Cluster() as target:
        yield source.bootstrap, target.bootstrap


@pytest.mark.parametrize("seed", range(SEEDS))
def test_kills_neither_lose_nor_repeat_a_record(
    clusters: tuple[str, str], tmp_path: Path, seed: int
) -> None:
    source, target = clusters
    random = Random(seed)
    topic = f"killed-{seed}"
    create(source, topic, PARTITIONS)
    sent = {index: some_shapes(random, RECORDS) for index in range(PARTITIONS)}
    part = RECORDS // KILLS
    words = command(
        source,
        target,
        *("--topics", topic, "--name", topic, "--commit-interval", str(random.choice([0.05, 0.3]))),
    )
    said = tmp_path / "said"
    interrupted = 0
    for number in range(KILLS):
        # Each life finds something to copy, however quick the one before it was.
        for index, shapes in sent.items():
            send(source, topic, index, shapes[number * part : (number + 1) * part])
        before = written(target, topic, PARTITIONS)
        with running(words, said) as process:
            # The first kills come wherever the program is, the others while it writes.
            if number < 2:
                time.sleep(random.uniform(0.2, 1.0))
            else:
                _until_written(target, topic, before + 1, process, said)
                time.sleep(random.uniform(0, 0.1))
            assert process.poll() is None, said.read_text()
            process.kill()
        interrupted += before < written(target, topic, PARTITIONS)
    report = mirror(source, target, "--topics", topic, "--name", topic)
    assert report["lag"] == 0
    assert interrupted, "no kill met a mirror that had written something"
    source_id = cluster_id(source)
    for index, shapes in sent.items():
        copied = read(target, topic, index, source_id)
        assert copied.origins == list(range(RECORDS))
        assert copied.shapes == shapes


def test_a_death_before_any_step_of_a_transaction_neither_loses_nor_repeats(
    clusters: tuple[str, str],
) -> None:
    source, target = clusters
    create(source, "dying", 1)
    # Each of them can be sent in one step: begin, records, positions, commit.
    shapes = [each for each in some_shapes(Random(3), 900) if each.key is not None][:600]
    words = ["--topics", "dying", "--name", "dying"]
    mirror(source, target, *words)  # the first positions are a transaction of their own
    deaths = 0
    for number, step in enumerate([1, 2, 3, 4, 5, 6]):
        send(source, "dying", 0, shapes[100 * number : 100 * number + 100])
        program = [sys.executable, str(Path(__file__).with_name("dying.py")), str(step)]
        line = command(source, target, *words)[3:]
        done = subprocess.run(
            [*program, *line, "--until-caught-up"],
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
        deaths += done.returncode != 0
    assert deaths >= 4
    mirror(source, target, *words)
    copied = read(target, "dying", 0, cluster_id(source))
    assert copied.origins == list(range(600))
    assert copied.shapes == shapes


def _until_written(
    target: str, topic: str, count: int, process: subprocess.Popen[bytes], said: Path
) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while written(target, topic, PARTITIONS) < count:
        assert process.poll() is None, said.read_text()
        assert time.monotonic() < deadline_s, f"nothing more was written: {said.read_text()}"
        time.sleep(0.02)


def test_only_committed_records_are_copied_and_in_order(clusters: tuple[str, str]) -> None:
    source, target = clusters
    create(source, "transacted", 1)
    producer = KafkaProducer(bootstrap_servers=source, transactional_id="t")
    with closing(producer):
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            producer.send("transacted", b"%d" % number, partition=0)
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    report = mirror(source, target, "--topics", "transacted", "--name", "transacted")
    assert report["records"] == 3
    assert [each.value for each in read(target, "transacted", 0).shapes] == [b"0", b"2", b"4"]


def test_two_mirrors_in_a_circle_copy_each_record_once(clusters: tuple[str, str]) -> None:
    west, east = clusters
    for each, value in ((west, b"of west"), (east, b"of east")):
        create(each, "circle", 1)
        with closing(KafkaProducer(bootstrap_servers=each)) as producer:
            producer.send("circle", value, partition=0).get(timeout=DEADLINE_S)
    for _ in range(3):
        mirror(west, east, "--topics", "circle", "--name", "circle")
        mirror(east, west, "--topics", "circle", "--name", "circle")
    assert sorted(each.value or b"" for each in read(west, "circle", 0).shapes) == [
        b"of east",
        b"of west",
    ]
    assert sorted(each.value or b"" for each in read(east, "circle", 0).shapes) == [
        b"of east",
        b"of west",
    ]


def test_new_topics_partitions_and_options_are_followed_while_it_runs(
    clusters: tuple[str, str], tmp_path: Path
) -> None:
    source, target = clusters
    create(source, "grows-a", 1, retention_bytes="1000000")
    said = tmp_path / "said"
    words = command(
        source, target, "--topics", "grows-.*", "--exclude", "grows-not", "--name", "grows"
    )
    with running([*words, "--refresh", "0.2"], said) as process:
        send(source, "grows-a", 0, some_shapes(Random(1), 10))
        _until_copied(target, "grows-a", 0, 10, process, said)
        create(source, "grows-b", 2)
        create(source, "grows-not", 1)
        with closing(KafkaAdminClient(bootstrap_servers=source)) as admin:
            admin.create_partitions({"grows-a": 3})
        send(source, "grows-a", 2, some_shapes(Random(2), 10))
        send(source, "grows-b", 1, some_shapes(Random(3), 10))
        _until_copied(target, "grows-a", 2, 10, process, said)
        _until_copied(target, "grows-b", 1, 10, process, said)
        process.terminate()
        assert process.wait(DEADLINE_S) == 0, said.read_text()
    with closing(KafkaConsumer(bootstrap_servers=target)) as consumer:
        assert consumer.partitions_for_topic("grows-a") == {0, 1, 2}
        assert consumer.partitions_for_topic("grows-b") == {0, 1}
        assert "grows-not" not in consumer.topics()
    assert own_option(target, "grows-a", "retention.bytes") == "1000000"


def _until_copied(
    target: str,
    topic: str,
    partition: int,
    count: int,
    process: subprocess.Popen[bytes],
    said: Path,
) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    copied = 0
    while copied < count:
        assert process.poll() is None, said.read_text()
        assert time.monotonic() < deadline_s, said.read_text()
        time.sleep(0.02)
        # A new consumer each time: it has not heard of an older state.
        committed = {"bootstrap_servers": target, "isolation_level": "read_committed"}
        end = 0
        with closing(KafkaConsumer(**committed)) as consumer:
            if partition in (consumer.partitions_for_topic(topic) or ()):
                [end] = consumer.end_offsets([TopicPartition(topic, partition)]).values()
        if end > count:  # markers of transactions have offsets, too: records are counted
            copied = len(read(target, topic, partition).shapes)
    assert copied == count


def test_a_groups_offsets_become_those_of_the_same_records(clusters: tuple[str, str]) -> None:
    source, target = clusters
    create(source, "grouped", 1)
    shapes = some_shapes(Random(5), 3000)
    for start in range(0, 3000, 1000):  # each copy adds a marker to the target's offsets
        send(source, "grouped", 0, shapes[start : start + 1000])
        mirror(source, target, "--topics", "grouped", "--name", "grouped")
    place = TopicPartition("grouped", 0)
    wanted = {"g-start": 0, "g-1": 1, "g-middle": 1500, "g-late": 2999, "g-end": 3000}
    for group, offset in wanted.items():
        with closing(KafkaConsumer(bootstrap_servers=source, group_id=group)) as consumer:
            consumer.assign([place])
            consumer.seek(place, offset)
            consumer.commit()
    words = command(source, target)
    words.insert(4, "offsets")
    words += ["--topics", "grouped", "--groups", "g-.*"]
    dry = subprocess.run([*words, "--dry-run"], capture_output=True, check=True)
    assert b"translated" in dry.stdout
    copied = read(target, "grouped", 0, cluster_id(source))
    by_origin = dict(zip(copied.origins, copied.offsets, strict=True))
    for attempt in ("committed", "kept"):
        done = subprocess.run(words, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stdout.decode().count(attempt) == len(wanted)
        for group, offset in wanted.items():
            with closing(KafkaConsumer(bootstrap_servers=target, group_id=group)) as consumer:
                committed = consumer.committed(place)
            if offset < 3000:
                assert committed == by_origin[offset], group
            else:
                assert committed is not None
                assert committed > by_origin[2999]


def test_a_second_mirror_of_a_name_shuts_the_first_out(
    clusters: tuple[str, str], tmp_path: Path
) -> None:
    source, target = clusters
    create(source, "fenced", 1)
    said = tmp_path / "said"
    words = command(source, target, "--topics", "fenced", "--name", "fenced")
    with running(words, said) as first:
        send(source, "fenced", 0, some_shapes(Random(1), 5))
        _until_copied(target, "fenced", 0, 5, first, said)
        mirror(source, target, "--topics", "fenced", "--name", "fenced")
        send(source, "fenced", 0, some_shapes(Random(2), 5))
        assert first.wait(DEADLINE_S) == 1
    assert "another mirror of this name has started" in said.read_text()
    mirror(source, target, "--topics", "fenced", "--name", "fenced")
    assert len(read(target, "fenced", 0).shapes) == 10


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_broker_that_is_killed_meanwhile_changes_nothing(tmp_path: Path, side: str) -> None:
    random = Random(7)
    sent = {index: some_shapes(random, RECORDS) for index in range(PARTITIONS)}
    said = tmp_path / "said"
    with Cluster(process=True) as source, Cluster(process=True) as target:
        create(source.bootstrap, "shaken", PARTITIONS)
        for index, shapes in sent.items():
            send(source.bootstrap, "shaken", index, shapes[: RECORDS // 2])
        words = command(source.bootstrap, target.bootstrap, "--topics", "shaken")
        with running([*words, "--commit-interval", "0.05"], said) as process:
            _until_written(target.bootstrap, "shaken", 1, process, said)
            shaken = source if side == "source" else target
            shaken.kill()
            shaken.start()
            for index, shapes in sent.items():
                send(source.bootstrap, "shaken", index, shapes[RECORDS // 2 :])
            for index in sent:
                _until_copied(target.bootstrap, "shaken", index, RECORDS, process, said)
        source_id = cluster_id(source.bootstrap)
        for index, shapes in sent.items():
            copied = read(target.bootstrap, "shaken", index, source_id)
            assert copied.origins == list(range(RECORDS))
            assert copied.shapes == shapes


def test_a_record_that_the_target_does_not_take_is_told(clusters: tuple[str, str]) -> None:
    source, target = clusters
    create(source, "large", 1)
    create(target, "large", 1, max_message_bytes="2000")
    with closing(KafkaProducer(bootstrap_servers=source)) as producer:
        producer.send("large", os.urandom(5000), partition=0).get(timeout=DEADLINE_S)
    done = subprocess.run(
        command(source, target, "--topics", "large", "--name", "large", "--until-caught-up"),
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 1
    assert "MESSAGE_TOO_LARGE" in done.stderr.decode()
    assert read(target, "large", 0).shapes == []


def test_what_the_source_has_deleted_is_told_and_passed(clusters: tuple[str, str]) -> None:
    source, target = clusters
    create(source, "deleted", 1)
    shapes = some_shapes(Random(9), 30)
    place = TopicPartition("deleted", 0)
    words = ("--topics", "deleted", "--name", "deleted")
    send(source, "deleted", 0, shapes[:10])
    mirror(source, target, *words)
    send(source, "deleted", 0, shapes[10:])
    with closing(KafkaAdminClient(bootstrap_servers=source)) as admin:
        admin.delete_records({place: 20})
    done = subprocess.run(
        command(source, target, *words, "--until-caught-up"),
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert "has deleted 10 offsets" in done.stderr.decode()
    assert read(target, "deleted", 0).shapes == shapes[:10] + shapes[20:]


def test_a_source_that_ends_before_what_was_copied_is_refused(
    clusters: tuple[str, str], tmp_path: Path
) -> None:
    _, target = clusters
    with Cluster() as source:
        create(source.bootstrap, "cut", 1)
        send(source.bootstrap, "cut", 0, some_shapes(Random(1), 10))
        mirror(source.bootstrap, target, "--topics", "cut", "--name", "cut")
        # As after an unclean election: the same topic, with fewer records.
        with closing(KafkaConsumer(bootstrap_servers=target)) as consumer:
            place = TopicPartition("barnabas-mirror.cut", 0)
            consumer.assign([place])
            consumer.seek_to_beginning(place)
            [*_, last] = consumer.poll(DEADLINE_S * 1000)[place]
        further = json.dumps(json.loads(last.value) | {"next": 50}).encode()
        with closing(KafkaProducer(bootstrap_servers=target)) as producer:
            producer.send(place.topic, further, last.key, partition=0).get(timeout=DEADLINE_S)
        done = subprocess.run(
            command(source.bootstrap, target, "--topics", "cut", "--name", "cut"),
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
    assert done.returncode == 1
    assert "was copied up to offset 50, but now ends at 10" in done.stderr.decode()
