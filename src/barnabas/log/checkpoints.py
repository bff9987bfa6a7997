"""Small text files with one number per key: offsets per partition, start offsets per leader epoch.

    0                       version
    2                       how many lines follow
    orders 0 4711           fields, separated by one space
    orders 1 12

UTF-8, LF. A missing or empty file has no entries; any other inconsistency is a CorruptFileError, so
that a torn file is never taken for a short one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from barnabas.log.files import Files
from barnabas.model.errors import CorruptFileError
from barnabas.model.ids import TopicPartition

VERSION = "0"


def encode_lines(lines: Iterable[str]) -> bytes:
    """Frame lines with version and count."""
    kept = list(lines)
    return "\n".join([VERSION, str(len(kept)), *kept, ""]).encode()


def decode_lines(data: bytes, path: str) -> list[list[str]]:
    """Return the fields of each line; the path is for the error only."""
    if not data:
        return []
    try:
        lines = data.decode().split("\n")
        if lines[0].strip() != VERSION:
            raise CorruptFileError(f"{path}: version {lines[0]!r}, must be {VERSION}")
        count = int(lines[1])
    except (UnicodeDecodeError, ValueError, IndexError) as failure:
        raise CorruptFileError(f"{path}: does not start with a version and a count") from failure
    entries = [line.split() for line in lines[2:] if line.strip()]
    if len(entries) != count:
        raise CorruptFileError(f"{path}: claims {count} entries, has {len(entries)}")
    return entries


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Return the content of an offset checkpoint."""
    return encode_lines(f"{topic} {part} {offset}" for (topic, part), offset in offsets.items())


def decode_offsets(data: bytes, path: str) -> dict[TopicPartition, int]:
    """Read the content of an offset checkpoint."""
    offsets = {}
    for fields in decode_lines(data, path):
        try:
            topic, partition, offset = fields
            offsets[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError as failure:
            raise CorruptFileError(f"{path}: unreadable line {' '.join(fields)!r}") from failure
    return offsets


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """Read an offset checkpoint; a missing file has no entries."""
    return decode_offsets(files.read(path) or b"", path)


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace an offset checkpoint, durably."""
    files.write_atomic(path, encode_offsets(offsets))
