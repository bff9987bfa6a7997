"""Identifiers: topic partitions, and the 16-byte ids of topics and clusters.

A uuid is kept as its 16 raw bytes (most significant first), because it is compared, hashed and
copied to the wire far more often than it is shown. Its text form is URL-safe base64 without
padding.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from barnabas.model.errors import InvalidValueError

Uuid: TypeAlias = bytes

ZERO_UUID: Uuid = bytes(16)
"""Means "no id" on the wire."""

NO_LEADER: Final = -1
"""The leader id of a partition without a leader."""

NO_EPOCH: Final = -1
"""An unknown epoch of a leader, a producer, a broker or a partition."""

EPOCH_DURING_DELETION: Final = -2
"""The leader epoch of a StopReplica for a deleted topic: newer than any leader's."""

NO_OFFSET: Final = -1
"""An offset that is unknown, or does not exist."""

LATEST: Final = -1
EARLIEST: Final = -2
"""Timestamps of ListOffsets that stand for the end and the start of a log."""

METADATA_UUID: Uuid = bytes(15) + b"\x01"
"""Reserved by Kafka for its metadata topic; never generated."""


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_text(uuid: Uuid) -> str:
    """Return the 22-character text form of a uuid."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> Uuid:
    """Parse the text form of a uuid; raise InvalidValueError on anything else."""
    try:
        uuid = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (ValueError, binascii.Error) as failure:
        raise InvalidValueError(f"{text!r} is not a base64 uuid") from failure
    if len(uuid) != 16:
        raise InvalidValueError(f"{text!r} has {len(uuid)} bytes; a uuid has 16")
    return uuid


def new_uuid(random_bytes: Callable[[int], bytes]) -> Uuid:
    """Generate a random (version 4) uuid, but no reserved value and none with a leading '-'."""
    while True:
        raw = bytearray(random_bytes(16))
        raw[6] = (raw[6] & 0x0F) | 0x40
        raw[8] = (raw[8] & 0x3F) | 0x80
        uuid = bytes(raw)
        # Kafka generates no ids that start with '-': command line tools would see an option.
        if uuid not in (ZERO_UUID, METADATA_UUID) and not uuid_text(uuid).startswith("-"):
            return uuid
