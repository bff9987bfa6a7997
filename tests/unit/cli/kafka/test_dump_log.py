"""`kafka-dump-log` on files of every kind: the lines of Kafka's tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.old_segments import NOW, make_rows, old_entries
from tests.unit.cli.kafka.tool_runs import RunTool, runner

from barnabas.assignment.embedded import encode_assignment
from barnabas.groups import records as groups
from barnabas.log import producer_snapshot, transaction_index
from barnabas.log.producer_state import ProducerEntry, SentBatch
from barnabas.log.time_index import TimeIndex
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, build_control_batch
from barnabas.records.offset_index import OffsetIndex
from barnabas.transactions import records as transactions
from barnabas.transactions.state import State
from barnabas.transactions.transaction import Transaction

NAME = "00000000000000000000"


@pytest.fixture
def dump(capsys: pytest.CaptureFixture[str]) -> RunTool:
    return runner("kafka-dump-log.sh", None, capsys)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """A segment of a batch of two records by an idempotent producer, and a marker."""
    rows = [(NOW, b"k1", b"hello", (("trace", b"1"), ("to", None))), (NOW + 5, None, b"you", ())]
    batch = build_batch(
        rows, "gzip", producer_id=7, producer_epoch=1, base_sequence=3, leader_epoch=0
    )
    marker = build_control_batch(
        ControlType.COMMIT,
        producer_id=7,
        producer_epoch=1,
        coordinator_epoch=4,
        now_ms=NOW + 9,
        base_offset=2,
        leader_epoch=0,
    )
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(batch + marker)
    return path


def crc_of(data: bytes) -> int:
    return int.from_bytes(data[17:21], "big")


def test_batches(dump: RunTool, segment: Path) -> None:
    run = dump("--files", str(segment))
    assert (run.code, run.err) == (0, "")
    data = segment.read_bytes()
    size = 12 + int.from_bytes(data[8:12], "big")
    assert run.out == (
        f"Dumping {segment}\n"
        "Log starting offset: 0\n"
        "baseOffset: 0 lastOffset: 1 count: 2 baseSequence: 3 lastSequence: 4 producerId: 7 "
        "producerEpoch: 1 partitionLeaderEpoch: 0 isTransactional: false isControl: false "
        f"deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: {NOW + 5} size: {size} "
        f"magic: 2 compresscodec: gzip crc: {crc_of(data)} isvalid: true\n"
        "baseOffset: 2 lastOffset: 2 count: 1 baseSequence: -1 lastSequence: -1 producerId: 7 "
        "producerEpoch: 1 partitionLeaderEpoch: 0 isTransactional: true isControl: true "
        f"deleteHorizonMs: OptionalLong.empty position: {size} CreateTime: {NOW + 9} "
        f"size: {len(data) - size} magic: 2 compresscodec: none crc: {crc_of(data[size:])} "
        "isvalid: true\n"
    )


def test_records(dump: RunTool, segment: Path) -> None:
    metadata = [
        f"| offset: 0 CreateTime: {NOW} keySize: 2 valueSize: 5 sequence: 3 headerKeys: [trace,to]",
        f"| offset: 1 CreateTime: {NOW + 5} keySize: -1 valueSize: 3 sequence: 4 headerKeys: []",
        f"| offset: 2 CreateTime: {NOW + 9} keySize: 4 valueSize: 6 sequence: -1 headerKeys: [] "
        "endTxnMarker: COMMIT coordinatorEpoch: 4",
    ]
    content = [" key: k1 payload: hello", " payload: you", ""]

    def records(*words: str) -> list[str]:
        lines = dump("--files", str(segment), *words).out.splitlines()[2:]
        return [line for line in lines if not line.startswith("baseOffset")]

    assert records("--deep-iteration") == metadata
    assert records("--print-data-log") == [a + b for a, b in zip(metadata, content, strict=True)]
    assert records("--value-decoder-class") == records("--print-data-log")
    bare = records("--print-data-log", "--skip-record-metadata")
    assert bare == ["| key: k1 payload: hello", " payload: you", ""]
    longs = records("--key-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder")
    assert longs[0].endswith(f" key: {int.from_bytes(b'k1', 'big')} payload: hello")


def test_an_old_decoder_is_deprecated(dump: RunTool, segment: Path) -> None:
    words = ("--value-decoder-class", "kafka.serializer.StringDecoder")
    assert dump("--files", str(segment), *words).out.startswith(
        f"Dumping {segment}\n"
        "kafka.serializer.StringDecoder is deprecated. Please use "
        "org.apache.kafka.tools.api.StringDecoder instead\n"
    )
    run = dump("--files", str(segment), "--value-decoder-class", "com.example.Mine")
    assert (run.code, run.out) == (1, "")
    assert "Failed to load decoder class com.example.Mine" in run.err


@pytest.mark.parametrize("magic", [0, 1])
def test_older_formats(dump: RunTool, tmp_path: Path, magic: int) -> None:
    rows = make_rows(0, 3, magic)
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(
        old_entries(rows, magic, "none") + old_entries(make_rows(3, 2, magic), magic, "gzip")
    )
    lines = dump("--files", str(path), "--print-data-log").out.splitlines()[2:]
    kind = "CreateTime" if magic else "NoTimestampType"
    first = [line for line in lines if line.startswith("offset: ")]
    assert len(first) == 4, "three messages, and a wrapper"
    assert first[3].startswith("offset: 4 position: ")
    assert f" {kind}: {rows[0].timestamp} size: " in first[0]
    assert f" magic: {magic} compresscodec: none crc: " in first[0]
    assert "compresscodec: gzip" in first[3]
    records = [line for line in lines if line.startswith("| ")]
    assert [line.split()[2] for line in records] == ["0", "1", "2", "3", "4"]
    assert records[0].startswith(f"| offset: 0 {kind}: {rows[0].timestamp} keySize: 5 valueSize: ")
    crc = first[0].split("crc: ")[1].split()[0]
    assert f" isValid: true crc: {crc}}} key: key 0 payload: value 0" in records[0]


def test_damage_at_the_end(dump: RunTool, segment: Path) -> None:
    segment.write_bytes(segment.read_bytes() + b"\0\0\0\0")
    run = dump("--files", str(segment))
    assert run.code == 0
    assert run.out.endswith(f"Found 4 invalid bytes at the end of {NAME}.log\n")
    wrong = bytearray(segment.read_bytes()[:-4])
    wrong[70] ^= 1
    segment.write_bytes(wrong)
    run = dump("--files", str(segment), "--deep-iteration")
    assert run.out.splitlines()[2].endswith("isvalid: false")


def test_part_of_a_segment(dump: RunTool, segment: Path) -> None:
    size = 12 + int.from_bytes(segment.read_bytes()[8:12], "big")
    assert len(dump("--files", str(segment), "--max-bytes", str(size)).out.splitlines()) == 3
    assert len(dump("--files", str(segment), "--max-bytes", str(size - 1)).out.splitlines()) == 2


def test_gaps_are_reported(dump: RunTool, segment: Path) -> None:
    later = build_batch([(NOW, None, b"x", ())], base_offset=9, leader_epoch=0)
    segment.write_bytes(segment.read_bytes() + later)
    run = dump("--files", str(segment), "--deep-iteration")
    assert run.err == f"Non-consecutive offsets in {segment}\n  2 is followed by 9\n"


def test_indexes(dump: RunTool, segment: Path, tmp_path: Path) -> None:
    position = 12 + int.from_bytes(segment.read_bytes()[8:12], "big")
    index, times = OffsetIndex(0), TimeIndex(0)
    index.append(2, position)
    times.append(NOW + 9, 2)
    paths = [tmp_path / f"{NAME}.index", tmp_path / f"{NAME}.timeindex"]
    paths[0].write_bytes(index.encode())
    paths[1].write_bytes(times.encode())
    both = ("--files", ",".join(map(str, paths)))
    run = dump(*both)
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        f"Dumping {paths[0]}\noffset: 2 position: {position}\n"
        f"Dumping {paths[1]}\ntimestamp: {NOW + 9} offset: 2\n"
    )
    assert dump(*both, "--verify-index-only").out == f"Dumping {paths[0]}\nDumping {paths[1]}\n"
    assert dump(*both, "--index-sanity-check").out == "".join(
        f"Dumping {path}\n{path} passed sanity check.\n" for path in paths
    )
    index = OffsetIndex(0)
    index.append(1, position)
    times.append(NOW + 20, 1)
    times.append(NOW + 30, 8)
    paths[0].write_bytes(index.encode())
    paths[1].write_bytes(times.encode())
    assert dump(*both, "--verify-index-only").err == (
        f"Mismatches in :{paths[0]}\n"
        "  Index offset: 1, log offset: 2\n"
        f"Found timestamp mismatch in :{paths[1]}\n"
        f"  Index timestamp: {NOW + 20}, log timestamp: {NOW + 5}\n"
        "The following indexed offsets are not found in the log.\n"
        "Indexed offset: 8, found log offset: -1\n"
    )
    paths[0].write_bytes(b"")
    assert dump("--files", str(paths[0])).out == f"Dumping {paths[0]}\n{paths[0]} is empty.\n"


def test_snapshots_and_aborted_transactions(dump: RunTool, tmp_path: Path) -> None:
    entry = ProducerEntry(7, 1)
    entry.last_timestamp = NOW
    entry.coordinator_epoch = 2
    entry.transaction_first_offset = 5
    entry.batches.append(SentBatch(3, 4, 9, 1, NOW))
    idle = ProducerEntry(8, 0)
    idle.last_timestamp = NOW
    snapshot, aborted = tmp_path / f"{NAME}.snapshot", tmp_path / f"{NAME}.txnindex"
    snapshot.write_bytes(producer_snapshot.encode([entry, idle]))
    aborted.write_bytes(transaction_index.encode([AbortedTransaction(7, 1, 5, 6)]))
    run = dump("--files", f"{snapshot},{aborted}")
    assert (run.code, run.err) == (0, "")
    assert run.out == (
        f"Dumping {snapshot}\n"
        "producerId: 7 producerEpoch: 1 coordinatorEpoch: 2 currentTxnFirstOffset: "
        f"OptionalLong[5] lastTimestamp: {NOW} firstSequence: 3 lastSequence: 4 lastOffset: 9 "
        f"offsetDelta: 1 timestamp: {NOW}\n"
        "producerId: 8 producerEpoch: 0 coordinatorEpoch: -1 currentTxnFirstOffset: "
        f"OptionalLong.empty lastTimestamp: {NOW} \n"
        f"Dumping {aborted}\n"
        "version: 0 producerId: 7 firstOffset: 1 lastOffset: 5 lastStableOffset: 6\n"
    )


def content(
    dump: RunTool, tmp_path: Path, records: list[tuple[bytes, bytes | None]], flag: str
) -> list[str]:
    path = tmp_path / f"{NAME}.log"
    rows = [(NOW, key, value, ()) for key, value in records]
    path.write_bytes(build_batch(rows, leader_epoch=0))
    words = ("--files", str(path), flag, "--skip-record-metadata")
    return dump(*words).out.splitlines()[3:]


def test_records_of_groups(dump: RunTool, tmp_path: Path) -> None:
    offset = groups.OffsetKey(group="g", topic="t", partition=1)
    value = groups.OffsetValue(offset=4, leader_epoch=2, metadata="m", commit_timestamp=NOW)
    member = groups.ClassicMemberValue(
        member_id="m1",
        client_id="c",
        client_host="/h",
        rebalance_timeout=1,
        session_timeout=2,
        subscription=b"??",
        assignment=encode_assignment([TopicPartition("t", 0)]),
    )
    group = groups.ClassicGroupValue(
        protocol_type="consumer", generation=3, protocol="range", leader="m1", members=[member]
    )
    target = groups.TargetMemberKey(group="g", member="m")
    assigned = groups.TargetMemberValue(
        topic_partitions=[groups.TopicPartitions(topic_id=bytes(15) + b"\1", partitions=[0])]
    )
    made = [
        groups.state_record(offset, value),
        groups.state_record(offset, None),
        groups.state_record(groups.ClassicGroupKey(group="g"), group),
        groups.state_record(target, assigned),
        (b"\0\x63x", b""),
        (b"\0", b""),
    ]
    lines = content(dump, tmp_path, made, "--offsets-decoder")
    key = '| key: {"type":"1","data":{"group":"g","topic":"t","partition":1}} payload: '
    assert lines[:2] == [
        key + '{"version":"3","data":{"offset":4,"leaderEpoch":2,"metadata":"m",'
        f'"commitTimestamp":{NOW}}}}}',
        key + "<DELETE>",
    ]
    assert lines[2] == (
        '| key: {"type":"2","data":{"group":"g"}} payload: {"version":"3","data":{"protocolType":'
        '"consumer","generation":3,"protocol":"range","leader":"m1","currentStateTimestamp":-1,'
        '"members":[{"memberId":"m1","groupInstanceId":null,"clientId":"c","clientHost":"/h",'
        '"rebalanceTimeout":1,"sessionTimeout":2,"subscription":"Pz8=","assignment":'
        '{"assignedPartitions":[{"topic":"t","partitions":[0]}],"userData":null}}]}}'
    )
    assert lines[3] == (
        '| key: {"type":"7","data":{"groupId":"g","memberId":"m"}} payload: {"version":"0","data":'
        '{"topicPartitions":[{"topicId":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":[0]}]}}'
    )
    assert lines[4] == "| key: Unknown record type 99 at offset 4, skipping."
    assert lines[5].startswith("| key: Error at offset 5, skipping. ")


def test_records_of_transactions(dump: RunTool, tmp_path: Path) -> None:
    transaction = Transaction(
        producer_id=5,
        producer_epoch=1,
        timeout_ms=60_000,
        last_update_ms=NOW,
        state=State.PREPARE_COMMIT,
        partitions=frozenset({TopicPartition("t", 1), TopicPartition("t", 0)}),
        start_ms=NOW,
    )
    record = transactions.encode_record("pay", transaction)
    made = [(bytes(record.key), bytes(record.value or b"")), (bytes(record.key), None)]
    lines = content(dump, tmp_path, made, "--transaction-log-decoder")
    assert lines == [
        "| key: transaction_metadata::transactionalId=pay payload: producerId:5,producerEpoch:1,"
        f"state=PrepareCommit,partitions=[t-0,t-1],txnLastUpdateTimestamp={NOW},"
        "txnTimeoutMs=60000",
        "| key: transaction_metadata::transactionalId=pay payload: <DELETE>",
    ]


def test_other_files(dump: RunTool, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    run = dump("--files", str(other))
    assert (run.code, run.out) == (0, f"Dumping {other}\n")
    assert run.err == f"Ignoring unknown file {other}\n"
    run = dump("--files", str(tmp_path / f"{NAME}.log"))
    assert run.code == 1
    assert run.err.endswith("no such file\n")
    run = dump("--files", str(other), "--cluster-metadata-decoder")
    assert "--cluster-metadata-decoder has no effect" in run.err
    assert 'Missing required argument "[files]"' in dump("--print-data-log").err
