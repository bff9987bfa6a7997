"""`partition.metadata`: which topic, by id, a partition directory belongs to.

version: 0
topic_id: vPeOCWypqUOSepEvx0cbog
"""

from __future__ import annotations

import logging

from barnabas.log.files import Files
from barnabas.model.errors import CorruptFileError, InvalidValueError
from barnabas.model.ids import Uuid, uuid_from_text, uuid_text

_logger = logging.getLogger("barnabas.logs")

NAME = "partition.metadata"


def encode(topic_id: Uuid) -> bytes:
    """Return the content of the file."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def decode(data: bytes, path: str) -> Uuid:
    """Return the topic id in the content of the file; CorruptFileError if there is none."""
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as failure:
        raise CorruptFileError(f"{path}: not UTF-8 at byte {failure.start}") from failure
    fields: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        field, separator, value = line.partition(": ")
        if not separator:
            raise CorruptFileError(f"{path}: line {number} is {line!r}, must be 'name: value'")
        fields[field] = value.strip()
    for field in ("version", "topic_id"):
        if field not in fields:
            raise CorruptFileError(f"{path}: no {field}, only {', '.join(fields)}")
    if fields["version"] != "0":
        raise CorruptFileError(f"{path}: version {fields['version']!r}, must be 0")
    try:
        return uuid_from_text(fields["topic_id"])
    except InvalidValueError as failure:
        raise CorruptFileError(f"{path}: topic_id {failure}") from failure


def read(files: Files, directory: str) -> Uuid | None:
    """Return the topic id of a partition directory; None for a directory that has none yet.

    The file is flushed with the first records, not before, so a crash can leave it damaged. A
    damaged file counts as missing.
    """
    path = f"{directory}/{NAME}"
    data = files.read(path)
    if not data:
        return None
    try:
        return decode(data, path)
    except CorruptFileError as failure:
        _logger.warning(
            "log %s: topic id unreadable, set again when the partition is assigned: %s",
            directory,
            failure,
        )
        return None
