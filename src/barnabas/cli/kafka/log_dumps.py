"""Files of a log in the lines of `kafka-dump-log`, over what `barnabas log dump` reads."""

from __future__ import annotations

import os
import sys
import zlib
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.kernels import Record
from barnabas.log import producer_snapshot, transaction_index
from barnabas.log.dump import dump_file
from barnabas.log.files import DiskFiles
from barnabas.log.producer_snapshot import SNAPSHOT
from barnabas.log.segment import INDEX, LOG, TIME_INDEX, TRANSACTION_INDEX
from barnabas.log.time_index import TimeIndex
from barnabas.model.errors import CorruptFileError, InvalidValueError
from barnabas.records.legacy import encode_message
from barnabas.records.offset_index import OffsetIndex

Decode = Callable[[int, bytes | None, bytes | None], tuple[str | None, str | None]]
"""Returns a record's key and value as text; takes its offset, too."""

Entry = dict[str, Any]

SEQUENCE_MASK = 0x7FFFFFFF
CRC_AT, CRC_FROM = 12, 16
"""In a message of magic 0 or 1, with its offset and size."""
CONTROL_TYPES = {
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}


def _number(data: bytes) -> str:
    return str(int.from_bytes(data, "big", signed=True))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


_DECODERS: dict[str, Callable[[bytes], str]] = {
    "StringDecoder": _text,
    "LongDecoder": _number,
    "IntegerDecoder": _number,
    "DefaultDecoder": bytes.hex,
}
_PACKAGE, _OLD_PACKAGE = "org.apache.kafka.tools.api.", "kafka.serializer."


def decoder(key_class: str, value_class: str) -> Decode:
    """Return how records are read by decoders with these names."""
    read_key, read_value = _decoder_named(key_class), _decoder_named(value_class)

    def decode(
        offset: int, key: bytes | None, value: bytes | None
    ) -> tuple[str | None, str | None]:
        shown_key = None if key is None else read_key(key)
        return shown_key, None if value is None else read_value(value)

    return decode


def deprecations(*names: str) -> list[str]:
    """Return what is to be said of decoders that have newer names."""
    return [
        f"{name} is deprecated. Please use {_PACKAGE}{name.removeprefix(_OLD_PACKAGE)} instead"
        for name in names
        if name.startswith(_OLD_PACKAGE)
    ]


def _decoder_named(name: str) -> Callable[[bytes], str]:
    package, dot, simple = name.rpartition(".")
    if simple not in _DECODERS or package + dot not in (_PACKAGE, _OLD_PACKAGE):
        known = ", ".join(f"{_PACKAGE}{each}" for each in _DECODERS)
        raise InvalidValueError(f"Failed to load decoder class {name}; known are: {known}")
    return _DECODERS[simple]


class LogDumps:
    """Prints files, and keeps what is wrong with them until the end."""

    def __init__(
        self,
        decode: Decode | None,
        *,
        deep: bool,
        bare: bool,
        silent: bool,
        sanity_only: bool,
        bytes_max: int | None,
        notes: Sequence[str] = (),
    ) -> None:
        self._files = DiskFiles()
        self._decode = decode
        self._deep = deep
        self._bare = bare
        self._silent = silent
        self._sanity_only = sanity_only
        self._bytes_max = bytes_max
        self._notes = notes
        """Lines about the decoders; each segment begins with them."""
        self._complaints: dict[str, list[str]] = {}

    def dump(self, path: str) -> None:
        """Print one file."""
        print(f"Dumping {path}")
        name = path.rpartition("/")[2]
        _, dot, suffix = name.rpartition(".")
        kind = {
            LOG: self._log,
            INDEX: self._index,
            TIME_INDEX: self._time_index,
            TRANSACTION_INDEX: self._transaction_index,
            SNAPSHOT: self._snapshot,
        }.get(dot + suffix)
        if kind is None or not name[:20].isdecimal():
            print(f"Ignoring unknown file {path}", file=sys.stderr)
        elif not self._files.exists(path):
            raise InvalidValueError(f"{path}: no such file")
        else:
            kind(path)

    def complain(self) -> None:
        """Print what is wrong, after everything else."""
        for title, lines in self._complaints.items():
            print(title, file=sys.stderr)
            for line in lines:
                print(line, file=sys.stderr)

    def _note(self, title: str, line: str) -> None:
        self._complaints.setdefault(title, []).append(line)

    # -- segments

    def _log(self, path: str) -> None:
        print("\n".join([*self._notes, f"Log starting offset: {_base_offset(path)}"]))
        end, previous = 0, -1
        try:
            for entry in dump_file(self._files, path, records=self._deep):
                after = entry["position"] + entry["size"]
                if self._bytes_max is not None and after > self._bytes_max:
                    return
                print(_batch_line(entry))
                for record in entry.get("records", ()):
                    if "error" in record:
                        print(record["error"], file=sys.stderr)
                        continue
                    offset = record["offset"]
                    if previous >= 0 and offset != previous + 1:
                        title = f"Non-consecutive offsets in {os.path.abspath(path)}"
                        self._note(title, f"  {previous} is followed by {offset}")
                    previous = offset
                    print(self._record_line(entry, record))
                end = after
        except CorruptFileError as failure:
            print(failure, file=sys.stderr)
        left = (self._files.size(path) or 0) - end
        if left > 0 and self._bytes_max is None:
            print(f"Found {left} invalid bytes at the end of {path.rpartition('/')[2]}")

    def _record_line(self, batch: Entry, record: Entry) -> str:
        text, prefix = "", "| "
        if not self._bare:
            text, prefix = _metadata(batch, record), " "
        if self._decode is None or batch["control"]:
            return text
        key, payload = self._decode(record["offset"], record["key"], record["value"])
        text += "" if key is None else f"{prefix}key: {key}"
        return text + ("" if payload is None else f" payload: {payload}")

    # -- indexes

    def _index(self, path: str) -> None:
        log, base = _log_of(path), _base_offset(path)
        index = OffsetIndex.decode(base, self._files.read(path) or b"", _size(self._files, log))
        if len(index) == 0:
            print(f"{path} is empty.")
            return
        if self._sanity_only:
            print(f"{path} passed sanity check.")
            return
        last_offsets = {
            entry["position"]: entry["last_offset"] for entry in dump_file(self._files, log)
        }
        for offset, position in index.entries():
            found = last_offsets.get(position, -1)
            if found != offset:
                title = f"Mismatches in :{os.path.abspath(path)}"
                self._note(title, f"  Index offset: {offset}, log offset: {found}")
            if not self._silent:
                print(f"offset: {offset} position: {position}")

    def _time_index(self, path: str) -> None:
        index = TimeIndex.decode(_base_offset(path), self._files.read(path) or b"")
        if self._sanity_only:
            print(f"{path} passed sanity check.")
            return
        batches = list(dump_file(self._files, _log_of(path)))
        ends = [batch["last_offset"] for batch in batches]
        previous = -1
        for timestamp, offset in index.entries():
            at = bisect_left(ends, offset)
            if at == len(ends) or ends[at] != offset:
                found = ends[at] if at < len(ends) else -1
                self._note(
                    "The following indexed offsets are not found in the log.",
                    f"Indexed offset: {offset}, found log offset: {found}",
                )
            else:
                self._compare_times(path, timestamp, batches[at]["max_timestamp"], previous)
            if not self._silent:
                print(f"timestamp: {timestamp} offset: {offset}")
            previous = timestamp

    def _compare_times(self, path: str, indexed: int, logged: int, previous: int) -> None:
        where = os.path.abspath(path)
        if logged != indexed:
            self._note(
                f"Found timestamp mismatch in :{where}",
                f"  Index timestamp: {indexed}, log timestamp: {logged}",
            )
        if previous >= indexed:
            self._note(
                f"Found out of order timestamp in :{where}",
                f"  Index timestamp: {indexed}, Previously indexed timestamp: {previous}",
            )

    def _transaction_index(self, path: str) -> None:
        for entry in transaction_index.decode(self._files.read(path) or b"", _base_offset(path)):
            print(
                f"version: 0 producerId: {entry.producer_id} firstOffset: {entry.first_offset} "
                f"lastOffset: {entry.last_offset} lastStableOffset: {entry.last_stable_offset}"
            )

    # -- snapshots

    def _snapshot(self, path: str) -> None:
        try:
            entries = producer_snapshot.decode(self._files.read(path) or b"")
        except CorruptFileError as failure:
            print(failure, file=sys.stderr)
            return
        for entry in entries:
            first = entry.transaction_first_offset
            line = (
                f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} "
                f"coordinatorEpoch: {entry.coordinator_epoch} "
                f"currentTxnFirstOffset: {_optional(None if first < 0 else first)} "
                f"lastTimestamp: {entry.last_timestamp} "
            )
            if entry.batches:
                batch = entry.batches[-1]
                line += (
                    f"firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence} "
                    f"lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} "
                    f"timestamp: {batch.timestamp}"
                )
            print(line)


def _base_offset(path: str) -> int:
    return int(path.rpartition("/")[2][:20])


def _log_of(path: str) -> str:
    """Return the segment that an index belongs to."""
    directory, slash, name = path.rpartition("/")
    return f"{directory}{slash}{name[:20]}{LOG}"


def _size(files: DiskFiles, path: str) -> int:
    size = files.size(path)
    if size is None:
        raise InvalidValueError(f"{path}: no such file")
    return size


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _batch_line(entry: Entry) -> str:
    text = f"offset: {entry['last_offset']}"
    if entry["magic"] >= 2:
        first = entry["base_sequence"]
        span = entry["last_offset"] - entry["base_offset"]
        last = first if first < 0 else (first + span) & SEQUENCE_MASK
        text = (
            f"baseOffset: {entry['base_offset']} lastOffset: {entry['last_offset']} "
            f"count: {entry['count']} baseSequence: {first} lastSequence: {last} "
            f"producerId: {entry['producer_id']} producerEpoch: {entry['producer_epoch']} "
            f"partitionLeaderEpoch: {entry['leader_epoch']} "
            f"isTransactional: {_boolean(entry['transactional'])} "
            f"isControl: {_boolean(entry['control'])} "
            f"deleteHorizonMs: {_optional(entry.get('delete_horizon'))}"
        )
    return (
        f"{text} position: {entry['position']} {_kind_of_time(entry)}: {entry['max_timestamp']} "
        f"size: {entry['size']} magic: {entry['magic']} compresscodec: {entry['codec']} "
        f"crc: {entry['crc']} isvalid: {_boolean(entry['valid'])}"
    )


def _kind_of_time(entry: Entry) -> str:
    return "NoTimestampType" if entry["magic"] == 0 else str(entry["timestamps"])


def _metadata(batch: Entry, record: Entry) -> str:
    sizes = [-1 if record[name] is None else len(record[name]) for name in ("key", "value")]
    text = (
        f"| offset: {record['offset']} {_kind_of_time(batch)}: {record['timestamp']} "
        f"keySize: {sizes[0]} valueSize: {sizes[1]}"
    )
    if batch["magic"] < 2:
        # Kafka's tool has this brace.
        return f"{text} isValid: true crc: {_message_crc(batch, record)}}}"
    sequence = batch["base_sequence"]
    if sequence >= 0:
        sequence = (sequence + record["offset"] - batch["base_offset"]) & SEQUENCE_MASK
    names = ",".join(name for name, _ in record["headers"])
    return f"{text} sequence: {sequence} headerKeys: [{names}]" + _control(batch, record)


def _message_crc(batch: Entry, record: Entry) -> int:
    """Return the CRC of a message of an older format; those inside a wrapper have their own."""
    if batch["codec"] == "none":
        return int(batch["crc"])
    inner = Record(record["offset"], record["timestamp"], record["key"], record["value"], ())
    return zlib.crc32(encode_message(inner, batch["magic"])[CRC_FROM:])


def _control(batch: Entry, record: Entry) -> str:
    if not batch["control"]:
        return ""
    if "marker" in record:
        return (
            f" endTxnMarker: {record['marker'].upper()} "
            f"coordinatorEpoch: {record['coordinator_epoch']}"
        )
    number = int.from_bytes((record["key"] or b"")[2:4], "big", signed=True)
    return f" controlType: {CONTROL_TYPES.get(number, 'UNKNOWN')}({number})"
