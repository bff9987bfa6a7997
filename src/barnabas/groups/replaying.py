"""Rebuilding a coordinator's state from the log, record by record."""

from __future__ import annotations

from typing import Any

from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.group import Groups
from barnabas.groups.offset_table import OffsetTable
from barnabas.groups.records import (
    ClassicGroupKey,
    ClassicGroupValue,
    OffsetKey,
    OffsetValue,
    decode_key,
    decode_value,
)
from barnabas.model.ids import TopicPartition
from barnabas.model.outcome import StateRecord
from barnabas.wire.schema import Message


class Replaying:
    """Rebuilds the groups and offsets of one coordinator."""

    def __init__(self, groups: Groups, offsets: OffsetTable) -> None:
        self._groups = groups
        self._offsets = offsets

    def replay(self, record: StateRecord, producer_id: int | None = None) -> None:
        """Replay one record of the log, in log order.

        A record of a transactional batch has a producer: it counts when `on_marker` says so.
        """
        key = decode_key(record.key)
        if key is None:
            return
        value = None if record.value is None else decode_value(key, record.value)
        match key:
            case OffsetKey():
                assert value is None or isinstance(value, OffsetValue)
                partition = TopicPartition(key.topic, key.partition)
                self._offsets.replay(key.group, partition, value, producer_id)
                if value is not None and key.group not in self._groups:
                    self._groups[key.group] = ClassicGroup(key.group, -1)
            case ClassicGroupKey():
                if isinstance(value, ClassicGroupValue):
                    self._groups[key.group] = ClassicGroup.load(key.group, value)
                elif isinstance(self._groups.get(key.group), ClassicGroup):
                    self._replay_tombstone(key.group)
            case _:
                self._replay_consumer(key, value)

    def _replay_consumer(self, key: Any, value: Message | None) -> None:
        group = self._groups.get(key.group)
        if not isinstance(group, ConsumerGroup):
            if value is None:
                return
            group = self._groups[key.group] = ConsumerGroup(key.group)
        if not group.replay(key, value):
            self._replay_tombstone(key.group)

    def _replay_tombstone(self, group_id: str) -> None:
        del self._groups[group_id]
        if self._offsets.of(group_id):
            self._groups[group_id] = ClassicGroup(group_id, -1)
