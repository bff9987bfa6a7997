"""`barnabas export` and `barnabas import`: a topic comes back from its files as it was."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Barnabas

from barnabas import KafkaConsumer, KafkaProducer, TopicPartition
from barnabas.aio import AIOKafkaProducer
from barnabas.mirror.sending import send_rows

ROWS: list[tuple[Any, ...]] = [
    (b"k", b"v", [], 1_000),
    (None, b"", [], 2_000),
    (b"", None, [], 3_000),
    (None, None, [("alone", b"1")], 4_000),
    (None, None, [], 5_000),
    (b"\xff\x00", b'two "lines"\r\n,', [("h", b"\xfe"), ("h", None), ("e", b"")], 6_000),
    ("ü".encode(), b"\\N", [], 7_000),
]


@pytest.fixture
def filled(barnabas_bootstrap: str, topic: str) -> str:
    """A topic with records of every kind, different ones in each partition."""

    async def fill() -> None:
        async with AIOKafkaProducer(bootstrap_servers=barnabas_bootstrap) as producer:
            for partition in (0, 2):
                rows = [(k, v, h, t + partition) for k, v, h, t in ROWS]
                await send_rows(producer, topic, partition, rows)
            await producer.flush()

    asyncio.run(fill())
    return topic


def content(bootstrap: str, topic: str) -> dict[int, list[tuple[Any, ...]]]:
    found: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
    )
    try:
        places = [TopicPartition(topic, index) for index in range(3)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(each) < end for each, end in ends.items()):
            for place, records in consumer.poll(100).items():
                found[place.partition] += [
                    (each.key, each.value, list(each.headers), each.timestamp) for each in records
                ]
    finally:
        consumer.close()
    return found


@pytest.fixture
def again(barnabas: Barnabas, topic: str) -> str:
    """Another topic of three partitions."""
    assert barnabas("topics", "create", f"{topic}-again", "--partitions", "3").code == 0
    return f"{topic}-again"


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.jsonl", "parquet", "csv", "jsonl"])
def test_a_round_trip_keeps_everything(
    barnabas: Barnabas,
    barnabas_bootstrap: str,
    filled: str,
    again: str,
    tmp_path: Path,
    name: str,
) -> None:
    path = tmp_path / name
    words = [] if "." in name else ["--format", name, "--rows-per-file", "3"]
    exported = barnabas("export", filled, str(path), "--json", *words)
    assert exported.code == 0, exported.err
    report = json.loads(exported.out)
    assert report["records"] == 14
    assert len(report["files"]) == (1 if "." in name else 6)
    imported = barnabas("import", str(path), again, "--json")
    assert imported.code == 0, imported.err
    assert json.loads(imported.out)["records"] == 14
    expected = content(barnabas_bootstrap, filled)
    assert expected[0] == [(k, v, h, t) for k, v, h, t in ROWS]
    assert content(barnabas_bootstrap, again) == expected


def exported_offsets(path: Path) -> list[tuple[int, int]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted((line["partition"], line["offset"]) for line in lines)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--from", "5"], [(0, 5), (0, 6), (2, 5), (2, 6)]),
        (["--to", "2", "--partition", "2"], [(2, 0), (2, 1)]),
        (["--from", "@2001", "--to", "@4001"], [(0, 2), (0, 3), (2, 1), (2, 2)]),
        (["--from", "end"], []),
        (["--from", "4", "--to", "2"], []),
        (["--from", "6", "--to", "900"], [(0, 6), (2, 6)]),
    ],
)
def test_a_range_by_offsets_or_times(
    barnabas: Barnabas,
    filled: str,
    tmp_path: Path,
    words: list[str],
    expected: list[tuple[int, int]],
) -> None:
    path = tmp_path / "a.jsonl"
    done = barnabas("export", filled, str(path), *words)
    assert done.code == 0, done.err
    assert exported_offsets(path) == expected


def test_aborted_records_are_left_out_unless_wanted(
    barnabas: Barnabas, barnabas_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    producer = KafkaProducer(bootstrap_servers=barnabas_bootstrap, transactional_id=topic)
    producer.init_transactions()
    for value in (b"committed", b"aborted"):
        producer.begin_transaction()
        producer.send(topic, value, partition=0)
        if value == b"committed":
            producer.commit_transaction()
        else:
            producer.flush()
            producer.abort_transaction()
    producer.close()
    path = tmp_path / "a.jsonl"
    assert barnabas("export", topic, str(path)).code == 0
    assert [json.loads(line)["value"] for line in path.read_text().splitlines()] == ["committed"]
    words = ("--isolation", "uncommitted", "--overwrite")
    assert barnabas("export", topic, str(path), *words).code == 0
    assert [json.loads(line)["value"] for line in path.read_text().splitlines()] == [
        "committed",
        "aborted",
    ]


def test_overwriting_leaves_nothing_of_the_export_before(
    barnabas: Barnabas, filled: str, tmp_path: Path
) -> None:
    words = ("export", filled, str(tmp_path), "--format", "jsonl")
    assert barnabas(*words, "--rows-per-file", "2").code == 0
    kept = tmp_path / f"{filled}-00001-{0:020d}.jsonl"  # of a partition that is not exported again
    for path in (kept, tmp_path / "other-00000-00000000000000000000.jsonl"):
        path.write_text("")
    assert barnabas(*words, "--partition", "0", "--from", "1").code == 1
    done = barnabas(*words, "--partition", "0", "--from", "1", "--overwrite", "--json")
    assert done.code == 0
    [written] = json.loads(done.out)["files"]
    names = sorted(each.name for each in tmp_path.iterdir())
    assert [name for name in names if name.startswith(f"{filled}-00000")] == [Path(written).name]
    assert len([name for name in names if name.startswith(f"{filled}-00002")]) == 4
    assert {kept.name, "other-00000-00000000000000000000.jsonl"} < set(names)


def test_an_import_that_fails_leaves_nothing_to_see(
    barnabas: Barnabas, barnabas_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"value": "a", "partition": 0}\n{"value": "b", "partition": 3}\n')
    done = barnabas("import", str(path), topic)
    assert done.code == 1
    assert "partition 3" in done.err
    assert "0-2" in done.err
    assert "--repartition" in done.err
    assert content(barnabas_bootstrap, topic) == {}
    assert barnabas("import", str(path), topic, "--repartition").code == 0
    assert sum(map(len, content(barnabas_bootstrap, topic).values())) == 2


def test_transactions_may_be_smaller(
    barnabas: Barnabas, barnabas_bootstrap: str, topic: str, tmp_path: Path
) -> None:
    for number in range(4):
        (tmp_path / f"{number}.jsonl").write_text('{"value": "a", "partition": 0}\n' * 10)
    done = barnabas("import", str(tmp_path), topic, "--rows-per-transaction", "20")
    assert done.code == 0, done.err
    assert len(content(barnabas_bootstrap, topic)[0]) == 40
    consumer = KafkaConsumer(bootstrap_servers=barnabas_bootstrap)
    [end] = consumer.end_offsets([TopicPartition(topic, 0)]).values()
    consumer.close()
    assert end == 42  # with the markers of two transactions


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("export", "no-such-topic", "a.csv"), "topic 'no-such-topic' does not exist"),
        (("export", "TOPIC", "a.csv", "--partition", "9"), "has partitions 0-2, not 9"),
        (("import", "none.csv", "TOPIC"), "none.csv: no such file"),
        (("import", ".", "TOPIC"), "the directory has no"),
    ],
)
def test_bad_input_is_named(
    barnabas: Barnabas,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = barnabas(*(topic if word == "TOPIC" else word for word in words))
    assert done.code == 1
    assert complaint in done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_pyarrow_says_what_to_install(
    barnabas: Barnabas, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    done = barnabas("export", topic, str(tmp_path / "dir"))
    assert done.code == 1
    assert "pip install 'barnabas[arrow]'" in done.err
    assert not (tmp_path / "dir").exists()
    assert barnabas("export", topic, str(tmp_path / "a.csv")).code == 0
