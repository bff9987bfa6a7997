"""The small values that several calls take or return."""

from __future__ import annotations

import base64
from enum import Enum
from typing import TypeVar

from barnabas.compat.confluent_kafka.partitions import TopicPartition
from barnabas.model import ids


class OrderedEnum(Enum):
    """An enumeration whose members can be sorted."""

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return bool(self.value < other.value)


Choice = TypeVar("Choice", bound=Enum)


def member(kind: type[Choice], given: Choice | str | int) -> Choice:
    """Return a member of an enumeration, given as such, or by name or number."""
    if isinstance(given, kind):
        return given
    if isinstance(given, str):
        known = {each.name: each for each in kind}.get(given.upper())
        if known is None:
            names = ", ".join(each.name for each in kind)
            raise ValueError(f"{kind.__name__} {given!r}: must be one of {names}")
        return known
    if isinstance(given, int):
        return kind(given)
    raise TypeError(f"{given!r}: must be a {kind.__name__}, its name or its number")


class Uuid:
    """128 bits; its text is the one of Kafka."""

    def __init__(self, most_significant_bits: int, least_significant_bits: int) -> None:
        mask = (1 << 64) - 1
        self._value = (most_significant_bits & mask) << 64 | least_significant_bits & mask

    def get_most_significant_bits(self) -> int:
        """Return the first half, as a signed number."""
        return _signed(self._value >> 64)

    def get_least_significant_bits(self) -> int:
        """Return the second half, as a signed number."""
        return _signed(self._value & (1 << 64) - 1)

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self._value.to_bytes(16)).rstrip(b"=").decode()

    __repr__ = __str__

    def __hash__(self) -> int:
        return hash(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Uuid):
            return NotImplemented
        return self._value == other._value


def _signed(half: int) -> int:
    return half - (1 << 64) if half >> 63 else half


def uuid_of(raw: ids.Uuid) -> Uuid:
    """Return the Uuid of 16 bytes."""
    return Uuid(int.from_bytes(raw[:8]), int.from_bytes(raw[8:]))


class Node:
    """A broker."""

    def __init__(self, id: int, host: str, port: int, rack: str | None = None) -> None:
        self.id = id
        self.id_string = str(id)
        self.host = host
        self.port = port
        self.rack = rack

    def __str__(self) -> str:
        rack = f"(Rack - {self.rack})" if self.rack else ""
        return f"({self.id}) {self.host}:{self.port} {rack}"


class ConsumerGroupTopicPartitions:
    """A group, and partitions with its offsets; None for all partitions."""

    def __init__(self, group_id: str, topic_partitions: list[TopicPartition] | None = None) -> None:
        self.group_id = group_id
        self.topic_partitions = topic_partitions


class ConsumerGroupState(OrderedEnum):
    """The state of a group."""

    UNKNOWN = 0
    UNKOWN = UNKNOWN  # the name that was misspelt first
    PREPARING_REBALANCING = 1
    COMPLETING_REBALANCING = 2
    STABLE = 3
    DEAD = 4
    EMPTY = 5


class ConsumerGroupType(OrderedEnum):
    """The protocol of a group."""

    UNKNOWN = 0
    CONSUMER = 1
    CLASSIC = 2


class TopicCollection:
    """Topics, by their names."""

    def __init__(self, topic_names: list[str]) -> None:
        self.topic_names = topic_names


class TopicPartitionInfo:
    """A partition with its leader and replicas."""

    def __init__(self, id: int, leader: Node | None, replicas: list[Node], isr: list[Node]) -> None:
        self.id = id
        self.leader = leader
        self.replicas = replicas
        self.isr = isr


class IsolationLevel(OrderedEnum):
    """Whether records of open and aborted transactions count."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


class ElectionType(OrderedEnum):
    """Which replica is elected: the preferred one, or any that is left."""

    PREFERRED = 0
    UNCLEAN = 1
