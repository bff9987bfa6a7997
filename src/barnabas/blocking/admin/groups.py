"""Consumer groups, as `KafkaAdminClient` lists, describes, moves and deletes them.

The names with `consumer` in them are those of earlier releases of kafka-python, with their
results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.admin import group_offsets, offsets
from barnabas.admin import groups as calls
from barnabas.admin.answers import class_of, names_of, raise_first
from barnabas.admin.group_offsets import CommittedOffset
from barnabas.admin.group_words import GroupState, GroupType, word
from barnabas.admin.groups import DEAD, GroupDescription, GroupMember, MemberToRemove
from barnabas.admin.offsets import EARLIEST, LATEST, OffsetSpec, OffsetTimestamp
from barnabas.admin.settling import settled_or_raise
from barnabas.assignment.embedded import decode_subscription
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import InvalidValueError, RemoteProtocolError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import GroupIdNotFoundError
from barnabas.structs import OffsetAndMetadata

OK = "OK"

ErrorClasses = dict[TopicPartition, type[RequestError]]


class MemberInformation(NamedTuple):
    """A member as `describe_consumer_groups` returns it; metadata and assignment as bytes."""

    member_id: str
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes


class GroupInformation(NamedTuple):
    """A group as `describe_consumer_groups` returns it."""

    error_code: int
    group: str
    state: str
    protocol_type: str
    protocol: str
    members: list[MemberInformation]
    authorized_operations: list[str] | None


async def list_groups(
    client: ClusterClient,
    broker_ids: Iterable[int] | None = None,
    states_filter: Iterable[GroupState | str] | None = None,
    types_filter: Iterable[GroupType | str] | None = None,
) -> list[dict[str, str]]:
    """Return a dict per group, of all brokers or some.

    admin.list_groups(states_filter=["Stable"], types_filter=["consumer"])
    """
    listed = await calls.list_groups_of(
        client,
        broker_ids,
        [word(GroupState, state) for state in states_filter or ()],
        [word(GroupType, kind) for kind in types_filter or ()],
    )
    return [
        {
            "group_id": group.name,
            "protocol_type": group.protocol_type,
            "group_state": group.state,
            "group_type": group.type,
        }
        for groups in settled_or_raise(listed).values()
        for group in groups
    ]


async def list_consumer_groups(
    client: ClusterClient, broker_ids: Iterable[int] | None = None
) -> list[tuple[str, str]]:
    """Return (group, protocol type) pairs, of all brokers or some.

    admin.list_consumer_groups()    # [('readers', 'consumer')]
    """
    listed = settled_or_raise(await calls.list_groups_of(client, broker_ids))
    return [(group.name, group.protocol_type) for groups in listed.values() for group in groups]


async def describe_groups(
    client: ClusterClient,
    group_ids: Iterable[str],
    group_coordinator_id: int | None = None,
    include_authorized_operations: bool = True,
) -> dict[str, dict[str, Any]]:
    """Return a dict per group with its members, or with its `error`.

    Coordinators are always looked up, as they move: `group_coordinator_id` is not needed.

        admin.describe_groups(["readers"])["readers"]["group_state"]
    """
    described = await calls.describe_groups(
        client, group_ids, authorized_operations=include_authorized_operations
    )
    return {name: _described(name, outcome) for name, outcome in described.items()}


def _described(name: str, outcome: GroupDescription | RequestError) -> dict[str, Any]:
    if isinstance(outcome, RequestError):
        error = f"[Error {outcome.errno}] {type(outcome).__name__}: {outcome}"
        state = DEAD if isinstance(outcome, GroupIdNotFoundError) else ""
        nothing = {"protocol_type": "", "protocol_data": "", "members": []}
        return {
            "group_id": name,
            "group_state": state,
            **nothing,
            "authorized_operations": None,
            "error": error,
        }
    return {
        "group_id": name,
        "group_state": outcome.state,
        "protocol_type": outcome.protocol_type,
        "protocol_data": outcome.assignor,
        "members": [_member(member) for member in outcome.members],
        "authorized_operations": names_of(outcome.authorized_operations),
        "error": None,
    }


def _member(member: GroupMember) -> dict[str, Any]:
    return {
        "member_id": member.member_id,
        "group_instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.host,
        "member_metadata": _subscription(member),
        "member_assignment": _assignment(member),
    }


def _subscription(member: GroupMember) -> Any:
    """Return a member's subscription, decoded if possible; KIP-848 ones are decoded already."""
    if member.subscribed_topics is not None:
        return {"topics": list(member.subscribed_topics)}
    try:
        wanted = decode_subscription(member.member_id, member.instance_id, member.metadata)
    except RemoteProtocolError:
        return member.metadata
    return {"topics": list(wanted.topics), "user_data": wanted.user_data}


def _assignment(member: GroupMember) -> Any:
    if member.partitions is None:
        return member.assignment
    by_topic: dict[str, list[int]] = {}
    for topic, index in member.partitions:
        by_topic.setdefault(topic, []).append(index)
    return {
        "assigned_partitions": [
            {"topic": topic, "partitions": indexes} for topic, indexes in by_topic.items()
        ]
    }


async def describe_consumer_groups(
    client: ClusterClient,
    group_ids: Iterable[str],
    group_coordinator_id: int | None = None,
    include_authorized_operations: bool = False,
) -> list[GroupInformation]:
    """Return a GroupInformation per group; one that does not exist is Dead and has no members.

    [readers] = admin.describe_consumer_groups(["readers"])
    """
    described = await calls.describe_groups(
        client, group_ids, authorized_operations=include_authorized_operations
    )
    raise_first(
        outcome
        for outcome in described.values()
        if isinstance(outcome, RequestError) and not isinstance(outcome, GroupIdNotFoundError)
    )
    return [
        GroupInformation(0, name, DEAD, "", "", [], None)
        if isinstance(outcome, RequestError)
        else GroupInformation(
            0,
            name,
            outcome.state,
            outcome.protocol_type,
            outcome.assignor,
            [
                MemberInformation(
                    member.member_id,
                    member.client_id,
                    member.host,
                    member.metadata,
                    member.assignment,
                )
                for member in outcome.members
            ],
            names_of(outcome.authorized_operations),
        )
        for name, outcome in described.items()
    ]


async def list_group_offsets(
    client: ClusterClient,
    group_specs: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str] | str,
) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
    """Return committed offsets of groups: all, or for the partitions in `{group: [partition, …]}`.

    admin.list_group_offsets("readers")
    admin.list_group_offsets({"readers": [TopicPartition("orders", 0)]})
    """
    if isinstance(group_specs, str):
        group_specs = [group_specs]
    specs = group_specs if isinstance(group_specs, Mapping) else dict.fromkeys(group_specs)
    if not specs:
        raise InvalidValueError("group_specs is empty: name at least one group")
    found = settled_or_raise(await group_offsets.list_group_offsets(client, specs))
    return {
        name: {
            partition: _committed(each) for partition, each in settled_or_raise(committed).items()
        }
        for name, committed in found.items()
    }


def _committed(committed: CommittedOffset) -> OffsetAndMetadata:
    return OffsetAndMetadata(committed.offset, committed.metadata, committed.leader_epoch)


async def list_consumer_group_offsets(
    client: ClusterClient,
    group_id: str,
    group_coordinator_id: int | None = None,
    partitions: Iterable[TopicPartition] | None = None,
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the committed offsets of one group, for all partitions or some (-1: none).

    admin.list_consumer_group_offsets("readers")
    """
    return (await list_group_offsets(client, {group_id: partitions}))[group_id]


async def alter_group_offsets(
    client: ClusterClient,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    group_coordinator_id: int | None = None,
) -> ErrorClasses:
    """Set offsets of a group without members; return the class of each error, or NoError.

    admin.alter_group_offsets("readers", {TopicPartition("orders", 0): OffsetAndMetadata(5)})
    """
    if not offsets:
        return {}
    outcomes = await group_offsets.commit_offsets(client, group_id, offsets)
    return {partition: class_of(error) for partition, error in outcomes.items()}


async def reset_group_offsets(
    client: ClusterClient,
    group_id: str,
    offset_specs: Mapping[TopicPartition, OffsetSpec | OffsetTimestamp | int],
    group_coordinator_id: int | None = None,
) -> dict[TopicPartition, dict[str, Any]]:
    """Set offsets of a group by position (OffsetSpec), time (OffsetTimestamp) or number.

    An offset out of range is moved to the nearer end; a time after the last record is the end.

        admin.reset_group_offsets("readers", {TopicPartition("orders", 0): OffsetSpec.EARLIEST})
    """
    if not offset_specs:
        return {}
    for partition, given in offset_specs.items():
        if not isinstance(given, int):
            raise InvalidValueError(
                f"{partition}: {given!r} must be an OffsetSpec, OffsetTimestamp or offset"
            )
    looked_up = {
        partition: int(given)
        for partition, given in offset_specs.items()
        if isinstance(given, OffsetSpec | OffsetTimestamp)
    }
    first = await offsets.list_offsets(client, dict.fromkeys(offset_specs, EARLIEST))
    last = await offsets.list_offsets(client, dict.fromkeys(offset_specs, LATEST))
    found = await offsets.list_offsets(client, looked_up)
    targets: dict[TopicPartition, int] = {}
    for partition, given in offset_specs.items():
        target = found[partition].offset if partition in found else int(given)
        end = last[partition].offset
        targets[partition] = end if target < 0 else min(max(target, first[partition].offset), end)
    outcomes = await group_offsets.commit_offsets(client, group_id, targets)
    return {
        partition: {"error": class_of(error), "offset": targets[partition]}
        for partition, error in outcomes.items()
    }


async def delete_group_offsets(
    client: ClusterClient,
    group_id: str,
    partitions: Iterable[TopicPartition],
    group_coordinator_id: int | None = None,
) -> ErrorClasses:
    """Delete offsets of a group; return the class of each error, or NoError.

    admin.delete_group_offsets("readers", [TopicPartition("orders", 0)])
    """
    wanted = list(partitions)
    if not wanted:
        return {}
    outcomes = await group_offsets.delete_group_offsets(client, group_id, wanted)
    return {partition: class_of(error) for partition, error in outcomes.items()}


async def delete_groups(
    client: ClusterClient, group_ids: Iterable[str], group_coordinator_id: int | None = None
) -> dict[str, str]:
    """Delete groups without members; return 'OK' or the name of the error of each.

    admin.delete_groups(["readers"])    # {'readers': 'OK'}
    """
    outcomes = await calls.delete_groups(client, list(group_ids))
    return {name: OK if error is None else type(error).__name__ for name, error in outcomes.items()}


async def delete_consumer_groups(
    client: ClusterClient, group_ids: Iterable[str], group_coordinator_id: int | None = None
) -> list[tuple[str, type[RequestError]]]:
    """Delete groups without members; return the class of each error, or NoError.

    admin.delete_consumer_groups(["readers"])
    """
    outcomes = await calls.delete_groups(client, list(group_ids))
    return [(name, class_of(error)) for name, error in outcomes.items()]


async def remove_group_members(
    client: ClusterClient,
    group_id: str,
    members: Sequence[MemberToRemove],
    group_coordinator_id: int | None = None,
) -> dict[str, type[RequestError]]:
    """Remove members of a group; return the class of each error, by member or instance id.

    admin.remove_group_members("readers", [MemberToRemove(group_instance_id="reader-1")])
    """
    outcomes = await calls.remove_members(client, group_id, members)
    return {
        str(member.member_id or member.group_instance_id): class_of(error)
        for member, error in outcomes.items()
    }
