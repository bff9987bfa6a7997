"""`barnabas log` on the files of a stopped broker."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import bombs
from tests.unit.broker.serving import Serving, batch_of, create_topic, fetch, produce

from barnabas.cli.main import main
from barnabas.log.files import DiskFiles
from barnabas.records.builder import build_batch
from barnabas.records.compression import Codec

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in ("log", *words)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The directory of a broker that has stopped: one partition of several segments."""
    path = tmp_path / "data"
    with Serving(path) as serving, serving.connect() as wire:
        create_topic(wire, "t", configs={"segment.bytes": "2000", "index.interval.bytes": "100"})
        for number in range(40):
            sent = batch_of(
                [f"value {number}", b"\xff"],
                producer_id=7,
                producer_epoch=0,
                base_sequence=2 * number,
            )
            assert produce(wire, "t", sent).error_code == 0
    return path


def segments(data: Path, suffix: str = ".log") -> list[Path]:
    return sorted((data / "t-0").glob(f"*{suffix}"))


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def test_dump_of_everything(run: Run, data: Path) -> None:
    code, out, _ = run("dump", data)
    assert code == 0
    for name in ("meta.properties", "recovery-point-offset-checkpoint", "leader-epoch-checkpoint"):
        assert str(data) in out
        assert name in out
    assert "broker.id=0" in out
    assert "topic=t partition=0 offset=80" in out
    assert out.count("producer_id=7 producer_epoch=0 base_sequence=") == 40
    assert "last_sequence=79 last_offset=79" in out
    assert "topic_id=" in out


def test_dump_as_json_with_records(run: Run, data: Path) -> None:
    code, out, _ = run("dump", segments(data)[0], "--records", "--json")
    assert code == 0
    batches = [json.loads(line) for line in out.splitlines()]
    assert [batch["base_offset"] for batch in batches] == list(range(0, 2 * len(batches), 2))
    assert all(batch["valid"] and batch["codec"] == "none" for batch in batches)
    first = batches[0]["records"]
    assert [record["value"] for record in first] == ["value 0", {"base64": "/w=="}]
    assert first[1]["offset"] == 1
    code, out, _ = run("dump", segments(data, ".index")[0], "--json")
    entries = [json.loads(line) for line in out.splitlines()]
    assert entries
    known = {batch["last_offset"]: batch["position"] for batch in batches}
    assert all(known[entry["offset"]] == entry["position"] for entry in entries)
    code, out, _ = run("dump", segments(data, ".timeindex")[0])
    assert "timestamp=" in out


def test_dump_of_damage(run: Run, data: Path) -> None:
    """A batch with a wrong CRC is shown and marked, bytes that are no batch end the dump."""
    flip(segments(data)[0], 70)
    code, out, _ = run("dump", segments(data)[0])
    assert code == 0
    assert out.count("valid=false") == 1
    assert "CRC" in out
    segments(data)[1].write_bytes(b"rubbish" * 20)
    code, out, _ = run("dump", segments(data)[1])
    assert code == 1
    assert "error=" in out
    assert run("dump", data / "nothing")[0] == 1


def test_verify_of_a_clean_directory(run: Run, data: Path) -> None:
    assert run("verify", data) == (0, "no damage found\n", "")
    assert run("verify", data / "t-0", "--json") == (0, "[]\n", "")


@pytest.mark.parametrize(
    ("suffix", "position", "said"),
    [
        (".log", 100, "CRC"),
        (".index", 7, "matches no batch"),
        (".timeindex", 3, "matches no batch"),
        (".snapshot", 30, "CRC"),
    ],
)
def test_verify_and_repair(run: Run, data: Path, suffix: str, position: int, said: str) -> None:
    victim = segments(data, suffix)[0]
    flip(victim, position)
    code, out, _ = run("verify", data)
    assert code == 1
    assert str(victim) in out
    assert said in out
    assert out.endswith("damaged\n")
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    code, out, _ = run("repair", data)
    assert code == 0
    assert out.endswith("nothing was changed; use --execute to repair\n")
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before
    code, out, _ = run("repair", data / "t-0", "--execute")
    assert code == 0
    end = 2 if suffix == ".log" else 80
    assert out.endswith(f"t-0: offsets 0 to {end}\n")
    assert run("verify", data) == (0, "no damage found\n", "")


def test_gaps_that_compaction_left_are_settled_by_a_repair(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the directory of the partition was copied, without the checkpoints beside it."""
    partition = tmp_path / "data" / "t-0"
    partition.mkdir(parents=True)
    stored = {
        base: b"".join(
            build_batch([(1, b"k", b"v")], base_offset=base + more, leader_epoch=0)
            for more in (0, 2)
        )
        for base in (0, 10)
    }
    for base, content in stored.items():
        (partition / f"{base:020}.log").write_bytes(content)
    data = tmp_path / "data"
    with Serving(data):
        assert "log t-0: offline" in caplog.text
    code, out, _ = run("repair", data, "--execute")
    assert code == 0
    assert out.endswith("t-0: offsets 0 to 13\n")
    with Serving(data) as serving, serving.connect() as wire:
        assert fetch(wire, "t").high_watermark == 13
    for base, content in stored.items():
        assert (partition / f"{base:020}.log").read_bytes() == content


def test_a_broken_checkpoint(run: Run, data: Path) -> None:
    path = data / "replication-offset-checkpoint"
    path.write_text("0\n5\nt 0 1\n")
    code, out, _ = run("verify", data)
    assert code == 1
    assert "claims 5 entries" in out
    assert run("repair", data, "--execute")[0] == 0
    assert not path.exists()
    assert run("verify", data)[0] == 0


def test_what_a_crash_leaves_is_no_damage(run: Run, data: Path) -> None:
    for suffix in (".index", ".timeindex"):
        segments(data, suffix)[-1].unlink()
    (data / f"t-0.{'0' * 32}-delete").mkdir()
    code, out, _ = run("verify", data)
    assert code == 0
    assert out.count("notice:") == 3


def test_repair_refuses_while_a_broker_runs(run: Run, data: Path) -> None:
    lock = DiskFiles().lock(str(data / ".lock"))
    code, out, err = run("repair", data / "t-0", "--execute")
    assert (code, out) == (1, "")
    assert "another broker is using it" in err
    lock.release()


def test_misuse(run: Run, data: Path) -> None:
    assert run("verify", data / "nothing")[0] == 1
    assert run("dump", data / "coordination.sqlite")[0] == 1


def test_dump_of_a_record_that_is_not_to_be_unpacked(run: Run, tmp_path: Path) -> None:
    """Its batch is shown, and what is before it in the batch; then the dump goes on."""
    records = itertools.chain(bombs.many_records(1, 10), bombs.one_record(40 << 20))
    later = bytearray(bombs.batch(Codec.NONE, bombs.many_records(1, 10)))
    later[:8] = (2).to_bytes(8, "big")
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(bombs.batch(Codec.GZIP, records, 2) + later)
    code, out, _ = run("dump", path, "--records", "--json")
    assert code == 0
    first, second = map(json.loads, out.splitlines())
    assert first["records"][0]["offset"] == 0
    assert "barnabas.unpacked.record.max.bytes" in first["records"][1]["error"]
    assert [record["offset"] for record in second["records"]] == [2]
    assert "unpacked" in run("dump", path, "--records")[1]
