"""The records of `__consumer_offsets`, byte for byte those of Kafka.

Key and value each start with their version as an int16. The version of a key says what the record
is about; a key of an unknown version was written by a newer broker and is skipped.

    key 0, 1   group, topic, partition   a committed offset key 2      group                     a
    classic group with its members key 3      group                     a consumer group's epoch key
    4      group                     the metadata of the topics a consumer group subscribes to key 5
    group, member             a consumer group's member key 6      group                     the
    epoch of a consumer group's target assignment key 7      group, member             the target
    assignment of a member key 8      group, member             a member's current assignment, and
    what it must still revoke
"""

from __future__ import annotations

import struct
from typing import Final

from barnabas.model.errors import RemoteProtocolError
from barnabas.model.ids import Uuid
from barnabas.model.outcome import StateRecord
from barnabas.wire.schema import Message, Struct, field, message
from barnabas.wire.schema import struct as wire_struct
from barnabas.wire.versioned import decode_versioned, encode_versioned


@message(versions="0-1")
class OffsetKey(Message):
    group: str = field("string")
    topic: str = field("string")
    partition: int = field("int32")


@message(versions="0-4", flexible="4+")
class OffsetValue(Message):
    offset: int = field("int64")
    leader_epoch: int = field("int32", versions="3+", default=-1, ignorable=True)
    metadata: str = field("string")
    commit_timestamp: int = field("int64")
    expire_timestamp: int = field("int64", versions="1", default=-1, ignorable=True)


@message(versions="2")
class ClassicGroupKey(Message):
    group: str = field("string")


@wire_struct
class ClassicMemberValue(Struct):
    member_id: str = field("string")
    group_instance_id: str | None = field(
        "string", versions="3+", nullable=True, default=None, ignorable=True
    )
    client_id: str = field("string")
    client_host: str = field("string")
    rebalance_timeout: int = field("int32", versions="1+", default=-1, ignorable=True)
    session_timeout: int = field("int32")
    subscription: bytes = field("bytes")
    assignment: bytes = field("bytes")


@message(versions="0-4", flexible="4+")
class ClassicGroupValue(Message):
    protocol_type: str = field("string")
    generation: int = field("int32")
    protocol: str | None = field("string", nullable=True, default=None)
    leader: str | None = field("string", nullable=True, default=None)
    current_state_timestamp: int = field("int64", versions="2+", default=-1, ignorable=True)
    members: list[ClassicMemberValue] = field([ClassicMemberValue])


@message(versions="3")
class GroupEpochKey(Message):
    group: str = field("string")


@message(versions="0", flexible="0+")
class GroupEpochValue(Message):
    epoch: int = field("int32")


@message(versions="4")
class SubscribedTopicsKey(Message):
    group: str = field("string")


@wire_struct
class PartitionRacks(Struct):
    partition: int = field("int32")
    racks: list[str] = field(["string"])


@wire_struct
class SubscribedTopic(Struct):
    topic_id: Uuid = field("uuid")
    topic_name: str = field("string")
    num_partitions: int = field("int32")
    partition_metadata: list[PartitionRacks] = field([PartitionRacks])


@message(versions="0", flexible="0+")
class SubscribedTopicsValue(Message):
    topics: list[SubscribedTopic] = field([SubscribedTopic])


@message(versions="5")
class MemberKey(Message):
    group: str = field("string")
    member: str = field("string")


@wire_struct
class ClassicProtocolValue(Struct):
    name: str = field("string")
    metadata: bytes = field("bytes")


@wire_struct
class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = field("int32")
    supported_protocols: list[ClassicProtocolValue] = field([ClassicProtocolValue])


@message(versions="0", flexible="0+")
class MemberValue(Message):
    instance_id: str | None = field("string", nullable=True, default=None)
    rack_id: str | None = field("string", nullable=True, default=None)
    client_id: str = field("string")
    client_host: str = field("string")
    subscribed_topic_names: list[str] = field(["string"])
    subscribed_topic_regex: str | None = field("string", nullable=True, default=None)
    rebalance_timeout_ms: int = field("int32", default=-1)
    server_assignor: str | None = field("string", nullable=True, default=None)
    classic_member_metadata: ClassicMemberMetadata | None = field(
        ClassicMemberMetadata, nullable=True, default=None, tag=0
    )


@message(versions="6")
class TargetEpochKey(Message):
    group: str = field("string")


@message(versions="0", flexible="0+")
class TargetEpochValue(Message):
    assignment_epoch: int = field("int32")


@wire_struct
class TopicPartitions(Struct):
    topic_id: Uuid = field("uuid")
    partitions: list[int] = field(["int32"])


@message(versions="7")
class TargetMemberKey(Message):
    group: str = field("string")
    member: str = field("string")


@message(versions="0", flexible="0+")
class TargetMemberValue(Message):
    topic_partitions: list[TopicPartitions] = field([TopicPartitions])


@message(versions="8")
class CurrentMemberKey(Message):
    group: str = field("string")
    member: str = field("string")


@message(versions="0", flexible="0+")
class CurrentMemberValue(Message):
    member_epoch: int = field("int32")
    previous_member_epoch: int = field("int32")
    state: int = field("int8")
    assigned_partitions: list[TopicPartitions] = field([TopicPartitions])
    partitions_pending_revocation: list[TopicPartitions] = field([TopicPartitions])


_KINDS: Final[tuple[tuple[type[Message], type[Message], int], ...]] = (
    (OffsetKey, OffsetValue, 3),
    (ClassicGroupKey, ClassicGroupValue, 3),
    (GroupEpochKey, GroupEpochValue, 0),
    (SubscribedTopicsKey, SubscribedTopicsValue, 0),
    (MemberKey, MemberValue, 0),
    (TargetEpochKey, TargetEpochValue, 0),
    (TargetMemberKey, TargetMemberValue, 0),
    (CurrentMemberKey, CurrentMemberValue, 0),
)
"""Kinds of records: class of the key, class of the value, and the value's version as written."""

_KEYS: Final = {
    version: key
    for key, _, _ in _KINDS
    for version in range(key.VERSIONS.first, key.VERSIONS.last + 1)
}
_VALUES: Final = {key: (value, version) for key, value, version in _KINDS}
_VERSION: Final = struct.Struct(">h")


def state_record(key: Message, value: Message | None) -> StateRecord:
    """Encode a record; a value of None is a tombstone."""
    cls, version = _VALUES[type(key)]
    assert value is None or type(value) is cls
    if isinstance(value, OffsetValue) and value.expire_timestamp != -1:
        version = 1  # the only version with a field for the commit's own retention
    return StateRecord(
        encode_versioned(key, type(key).VERSIONS.last),
        None if value is None else encode_versioned(value, version),
    )


def decode_key(data: bytes) -> Message | None:
    """Decode a key; None if a newer broker wrote it."""
    if len(data) < _VERSION.size:
        raise RemoteProtocolError(f"a key of {len(data)} bytes has no version")
    cls = _KEYS.get(_VERSION.unpack_from(data)[0])
    return None if cls is None else decode_versioned(cls, data)[0]


def decode_value(key: Message, data: bytes) -> Message:
    """Decode the value that belongs to a key."""
    return decode_versioned(_VALUES[type(key)][0], data)[0]
