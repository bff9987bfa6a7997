"""Validation of the arguments that all consumers take: offsets, partitions, timestamps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata


def checked_partition(partition: Any) -> TopicPartition:
    """Return a partition; kafka-python's class of that name is accepted, as it is such a pair."""
    if not (
        isinstance(partition, tuple)
        and len(partition) == 2
        and isinstance(partition[0], str)
        and isinstance(partition[1], int)
    ):
        raise TypeError(f"{partition!r} is not a TopicPartition")
    return partition if isinstance(partition, TopicPartition) else TopicPartition(*partition)


def checked_partitions(partitions: Iterable[Any]) -> list[TopicPartition]:
    """Return the partitions, each validated."""
    return [checked_partition(partition) for partition in partitions]


def checked_offset(offset: Any) -> int:
    """Return an offset to seek to."""
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        raise ValueError(f"offset {offset!r}: must be a whole number, at least 0")
    return offset


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets to commit: OffsetAndMetadata, a bare offset, or (offset, metadata)."""
    if not isinstance(offsets, Mapping) or not offsets:
        raise ValueError(f"offsets {offsets!r}: must be {{TopicPartition: OffsetAndMetadata}}")
    return {
        checked_partition(partition): _committable(partition, value)
        for partition, value in offsets.items()
    }


def checked_timestamps(timestamps: Any) -> dict[TopicPartition, int]:
    """Return the timestamps to search for, in milliseconds."""
    if not isinstance(timestamps, Mapping):
        raise TypeError(f"timestamps {timestamps!r}: must be {{TopicPartition: milliseconds}}")
    checked = {}
    for partition, timestamp in timestamps.items():
        if int(timestamp) < 0:
            raise ValueError(f"timestamp {timestamp} for {partition}: must be at least 0")
        checked[checked_partition(partition)] = int(timestamp)
    return checked


def checked_count(count: Any, name: str) -> int:
    """Return a number of records."""
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{name}={count!r}: must be a whole number")
    if count < 1:
        raise ValueError(f"{name}={count}: must be at least 1")
    return count


def _committable(partition: Any, value: Any) -> OffsetAndMetadata:
    parts = value if isinstance(value, tuple) else (value,)
    offset, metadata, epoch = (*parts, *("", -1)[len(parts) - 1 :])[:3] if parts else (None, "", -1)
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        raise ValueError(f"offset {offset!r} for {partition}: must be a whole number, at least 0")
    if metadata is None:  # as programs written for kafka-python 2 pass it
        metadata = ""
    if not isinstance(metadata, str):
        raise ValueError(f"metadata {metadata!r} for {partition}: must be a string")
    return OffsetAndMetadata(offset, metadata, -1 if epoch is None else epoch)
