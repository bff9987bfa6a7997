"""The content of a log's files, entry by entry, as plain values that can be printed.

The name of a file says what it holds: segments and their indexes, snapshots, checkpoints,
leader epochs, partition.metadata, meta.properties. A batch whose CRC is wrong is shown as it is,
and marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from barnabas.kernels import check_batch, scan_batch
from barnabas.kernels.batch_header import HEADER_SIZE
from barnabas.log import partition_metadata, producer_snapshot, transaction_index
from barnabas.log.checkpoints import decode_offsets
from barnabas.log.directory import META
from barnabas.log.files import File, Files
from barnabas.log.inspection import CHECKPOINTS, partitions_in
from barnabas.log.leader_epochs import EPOCH_FILE, LeaderEpochs
from barnabas.log.producer_snapshot import SNAPSHOT
from barnabas.log.segment import INDEX, LOG, TIME_INDEX, TRANSACTION_INDEX, is_segment_file
from barnabas.log.time_index import TimeIndex
from barnabas.model.errors import CorruptFileError, CorruptRecordError, InvalidValueError
from barnabas.model.ids import uuid_text
from barnabas.records.batch import BatchHeader, Record, read_batch
from barnabas.records.compression import TooLargeError
from barnabas.records.control import read_marker
from barnabas.records.legacy import iterate_messages
from barnabas.records.message_set import is_message, scan_message
from barnabas.records.offset_index import OffsetIndex

Entry = dict[str, Any]


def files_to_dump(files: Files, path: str) -> Iterator[str]:
    """Yield the files at a path: itself, those of a partition, or of all partitions."""
    if not files.is_dir(path):
        if not files.exists(path):
            raise InvalidValueError(f"{path}: no such file")
        yield path
        return
    for name in files.list(path):
        if _is_known(name) and not files.is_dir(f"{path}/{name}"):
            yield f"{path}/{name}"
    for partition in partitions_in(files, path):
        yield from files_to_dump(files, partition)


def _is_known(name: str) -> bool:
    return is_segment_file(name) or name in (
        *CHECKPOINTS,
        EPOCH_FILE,
        partition_metadata.NAME,
        META,
    )


def dump_file(files: Files, path: str, *, records: bool = False) -> Iterator[Entry]:
    """Yield what is in a file, in its order; CorruptFileError where it is unreadable.

    With `records`, a batch has an iterator of them: a few bytes may unpack to millions.
    """
    directory, _, name = path.rpartition("/")
    base = int(name[:20]) if is_segment_file(name) else 0
    if name.endswith(LOG):
        yield from _dump_segment(files, path, records)
        return
    data = files.read(path)
    if data is None:
        raise InvalidValueError(f"{path}: no such file")
    if name.endswith(INDEX):
        size = files.size(f"{directory}/{name[:20]}{LOG}")
        index = OffsetIndex.decode(base, data, 2**31 if size is None else size)
        for offset, position in index.entries():
            yield {"offset": offset, "position": position}
    elif name.endswith(TIME_INDEX):
        for timestamp, offset in TimeIndex.decode(base, data).entries():
            yield {"timestamp": timestamp, "offset": offset}
    elif name.endswith(TRANSACTION_INDEX):
        for entry in transaction_index.decode(data, base):
            yield entry._asdict()
    elif name.endswith(SNAPSHOT):
        for producer in producer_snapshot.decode(data):
            yield {
                "producer_id": producer.producer_id,
                "epoch": producer.epoch,
                "last_sequence": producer.last_sequence,
                "last_offset": producer.batches[-1].last_offset if producer.batches else -1,
                "timestamp": producer.last_timestamp,
                "coordinator_epoch": producer.coordinator_epoch,
                "transaction_first_offset": producer.transaction_first_offset,
            }
    elif name == EPOCH_FILE:
        for epoch, start in LeaderEpochs.decode(data, path):
            yield {"epoch": epoch, "start_offset": start}
    elif name in CHECKPOINTS:
        for (topic, partition), offset in decode_offsets(data, path).items():
            yield {"topic": topic, "partition": partition, "offset": offset}
    elif name == partition_metadata.NAME:
        yield {"topic_id": uuid_text(partition_metadata.decode(data, path))}
    elif name == META:
        lines = data.decode(errors="replace").splitlines()
        yield dict(line.split("=", 1) for line in lines if "=" in line and line[0] != "#")
    else:
        raise InvalidValueError(f"{path}: not a segment, index, snapshot or checkpoint file")


def _dump_segment(files: Files, path: str, records: bool) -> Iterator[Entry]:
    file = files.open(path)
    try:
        position, end = 0, file.size()
        while position < end:
            try:
                head = file.pread(HEADER_SIZE, position)
                header = scan_message(head) if is_message(head) else scan_batch(head)
            except CorruptRecordError as failure:
                raise CorruptFileError(f"{path} at {position}: {failure}") from failure
            if position + header.size > end:
                raise CorruptFileError(
                    f"{path} at {position}: a batch of {header.size} bytes, but "
                    f"only {end - position} are left"
                )
            yield from _dump_batch(file, position, header, records)
            position += header.size
    finally:
        file.close()


def _dump_batch(file: File, position: int, header: BatchHeader, records: bool) -> Iterator[Entry]:
    data = file.pread(header.size, position)
    flaw = None
    found: list[Record] | None = None
    try:
        if not header.is_message:
            check_batch(data, 0)
        else:
            # Only unpacking shows which offsets a wrapper holds, and how many.
            found = list(iterate_messages(data))
            first = found[0].offset
            delta = header.base_offset - first
            header = replace(header, base_offset=first, last_offset_delta=delta, count=len(found))
    except CorruptRecordError as failure:
        flaw = str(failure)
    entry: Entry = {
        "position": position,
        "size": header.size,
        "magic": header.magic,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.count,
        "leader_epoch": header.leader_epoch,
        "crc": header.crc,
        "valid": flaw is None,
        "codec": _codec(header),
        "timestamps": "LogAppendTime" if header.is_append_time else "CreateTime",
        "base_timestamp": header.base_timestamp,
        "max_timestamp": header.max_timestamp,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
    }
    if header.delete_horizon_ms is not None:
        entry["delete_horizon"] = header.delete_horizon_ms
    if flaw is not None:
        entry["flaw"] = flaw
    if records and flaw is None:
        entry["records"] = _dump_records(
            read_batch(data, header) if found is None else found, header
        )
    yield entry


def _dump_records(records: Iterable[Record], header: BatchHeader) -> Iterator[Entry]:
    """Yield the records of a batch, up to one that is too large to unpack."""
    try:
        for record in records:
            yield {
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": record.key,
                "value": record.value,
                "headers": [list(each) for each in record.headers],
                **_marker(record, header),
            }
    except TooLargeError as failure:
        yield {"error": str(failure)}


def _codec(header: BatchHeader) -> str:
    try:
        return header.codec.name.lower()
    except CorruptRecordError:
        return "unknown"


def _marker(record: Any, header: BatchHeader) -> Entry:
    marker = read_marker(record) if header.is_control else None
    if marker is None:
        return {}
    return {"marker": marker.type.name.lower(), "coordinator_epoch": marker.coordinator_epoch}
