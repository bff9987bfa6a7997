"""`partition.metadata`: which topic, by id, a partition directory belongs to.

version: 0
topic_id: vPeOCWypqUOSepEvx0cbog
"""

from __future__ import annotations

import logging

from barnabas.log.files import Files
from barnabas.model.errors import CorruptFileError, InvalidValueError
from barnabas.model.ids import Uuid, uuid_from_text, uuid_text

_logger = logging.getLogger(__name__)

NAME = "partition.metadata"


def encode(topic_id: Uuid) -> bytes:
    """Return the content of the file."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def decode(data: bytes, path: str) -> Uuid:
    """Read the content of the file."""
    try:
        fields = dict(line.split(": ", 1) for line in data.decode().splitlines())
        if fields["version"].strip() != "0":
            raise CorruptFileError(f"{path} has version {fields['version']!r}; only 0 is known")
        return uuid_from_text(fields["topic_id"].strip())
    except (UnicodeDecodeError, ValueError, KeyError, InvalidValueError) as failure:
        raise CorruptFileError(f"{path} does not name a topic: {failure}") from failure


def read(files: Files, directory: str) -> Uuid | None:
    """Return the topic id of a partition directory; None for a directory that has none yet.

    The file is flushed with the first records, not before, so a crash can leave it damaged; then
    it is as good as not there.
    """
    path = f"{directory}/{NAME}"
    data = files.read(path)
    if not data:
        return None
    try:
        return decode(data, path)
    except CorruptFileError as failure:
        _logger.warning("%s; taken for a log whose topic is not known", failure)
        return None
