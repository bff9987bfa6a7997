"""Groups: list, describe and delete them, and remove their members.

Classic and KIP-848 groups are described alike; what only one of them has is None in the
other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from barnabas.admin.acls import ACLOperation, operations_of
from barnabas.admin.brokers import ask_brokers
from barnabas.admin.coordinators import Kind, ask_coordinators, at_coordinator, capped
from barnabas.admin.failures import check, failure, failure_or_none
from barnabas.admin.settling import settled_or_raise
from barnabas.assignment.embedded import decode_assignment
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RemoteProtocolError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import GroupIdNotFoundError, UnsupportedVersionError
from barnabas.wire.messages import consumer_group_describe as consumer
from barnabas.wire.messages import describe_groups as classic
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

CLASSIC, CONSUMER = "classic", "consumer"
CONSUMER_PROTOCOL = "consumer"
"""The protocol type of groups whose assignments are lists of partitions."""

DEAD = "Dead"
LAST_DEAD_VERSION = 5
"""Of DescribeGroups: a group that does not exist is dead, which is not an error."""

FIRST_VERSION_WITH_STATES = 4
FIRST_VERSION_WITH_TYPES = 5
"""Of ListGroups."""

FIRST_VERSION_WITH_OPERATIONS = 3
"""Of DescribeGroups."""

FIRST_VERSION_OF_MANY = 3
"""Of LeaveGroup: several members leave at once, and static ones by their instance ids."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """Summary of a group; state and type are empty if the broker is too old to return them."""

    name: str
    state: str
    type: str
    protocol_type: str


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group, and its assignment (None if that cannot be decoded)."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...] | None
    metadata: bytes = b""
    assignment: bytes = b""
    rack: str | None = None
    epoch: int | None = None
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    target: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members."""

    name: str
    state: str
    type: str
    assignor: str
    coordinator_id: int
    members: tuple[GroupMember, ...]
    protocol_type: str = CONSUMER_PROTOCOL
    authorized_operations: frozenset[ACLOperation] | None = None
    epoch: int | None = None
    assignment_epoch: int | None = None


@dataclass(frozen=True)
class MemberToRemove:
    """A member of a group to remove: by its id, or by its instance id if it is a static one.

    MemberToRemove(member_id="consumer-1-9f2c")
    MemberToRemove(group_instance_id="reader-1", reason="moved to another machine")
    """

    member_id: str | None = None
    group_instance_id: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.member_id is None and self.group_instance_id is None:
            raise InvalidValueError("MemberToRemove needs a member_id or a group_instance_id")


async def list_groups(
    client: ClusterClient,
    states: Iterable[str] = (),
    types: Iterable[str] = (),
    *,
    broker_ids: Iterable[int] | None = None,
    timeout_ms: float | None = None,
) -> list[ListedGroup]:
    """Return the groups of all brokers (or some), sorted by name.

    await list_groups(client, states=["Stable"], types=["consumer"])
    """
    listed = await list_groups_of(client, broker_ids, states, types, timeout_ms=timeout_ms)
    return sorted(
        (group for groups in settled_or_raise(listed).values() for group in groups),
        key=lambda group: group.name,
    )


async def list_groups_of(
    client: ClusterClient,
    broker_ids: Iterable[int] | None = None,
    states: Iterable[str] = (),
    types: Iterable[str] = (),
    *,
    timeout_ms: float | None = None,
) -> dict[int, list[ListedGroup] | RequestError]:
    """Return the groups that each broker coordinates, or its failure."""
    wanted_states, wanted_types = list(states), list(types)
    least = FIRST_VERSION_WITH_STATES if wanted_states else 0
    least = FIRST_VERSION_WITH_TYPES if wanted_types else least

    async def ask(broker_id: int, connection: Connection) -> list[ListedGroup]:
        version = connection.version_of(ListGroupsRequest, at_least=least)
        request = ListGroupsRequest(states_filter=wanted_states, types_filter=wanted_types)
        response: ListGroupsResponse = await connection.send(request, version=version)
        check(response.error_code, f"groups of broker {broker_id}")
        return [
            ListedGroup(group.group_id, group.group_state, group.group_type, group.protocol_type)
            for group in response.groups
        ]

    return await ask_brokers(client, broker_ids, ask, timeout_ms=timeout_ms)


async def describe_group(client: ClusterClient, name: str) -> GroupDescription:
    """Return a group with its members; raises GROUP_ID_NOT_FOUND."""
    return settled_or_raise(await describe_groups(client, [name]))[name]


async def describe_groups(
    client: ClusterClient,
    names: Iterable[str],
    *,
    authorized_operations: bool = False,
    timeout_ms: float | None = None,
) -> dict[str, GroupDescription | RequestError]:
    """Return groups of either protocol with their members, or the failure of each."""

    async def ask(
        node_id: int, connection: Connection, keys: list[str]
    ) -> dict[str, GroupDescription | RequestError]:
        outcomes = await _describe_classic(connection, node_id, keys, authorized_operations)
        dead = [key for key in keys if isinstance(outcomes.get(key), GroupIdNotFoundError)]
        key = consumer.ConsumerGroupDescribeRequest.KEY
        assert key is not None
        if dead and connection.versions.supports(key):
            newer = await _describe_newer(connection, node_id, dead, authorized_operations)
            outcomes |= {
                name: found
                for name, found in newer.items()
                if not isinstance(found, UnsupportedVersionError)  # it has none of them
            }
        return outcomes

    return await ask_coordinators(client, names, Kind.GROUP, ask, timeout_ms=timeout_ms)


async def _describe_classic(
    connection: Connection, coordinator_id: int, names: list[str], operations: bool
) -> dict[str, GroupDescription | RequestError]:
    version = capped(connection, classic.DescribeGroupsRequest, LAST_DEAD_VERSION)
    request = classic.DescribeGroupsRequest(
        groups=names,
        include_authorized_operations=operations and version >= FIRST_VERSION_WITH_OPERATIONS,
    )
    response: classic.DescribeGroupsResponse = await connection.send(request, version=version)
    outcomes: dict[str, GroupDescription | RequestError] = {}
    for group in response.groups:
        name = group.group_id
        if group.error_code:
            outcomes[name] = failure(group.error_code, name, group.error_message)
        elif group.group_state == DEAD:
            outcomes[name] = GroupIdNotFoundError(f"group {name!r} does not exist")
        else:
            outcomes[name] = _classic(group, coordinator_id)
    return outcomes


def _classic(group: classic.DescribedGroup, coordinator_id: int) -> GroupDescription:
    is_readable = group.protocol_type == CONSUMER_PROTOCOL
    return GroupDescription(
        group.group_id,
        group.group_state,
        CLASSIC,
        group.protocol_data,
        coordinator_id,
        tuple(
            GroupMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                _assigned(bytes(member.member_assignment)) if is_readable else None,
                bytes(member.member_metadata),
                bytes(member.member_assignment),
            )
            for member in group.members
        ),
        group.protocol_type,
        operations_of(group.authorized_operations),
    )


def _assigned(data: bytes) -> tuple[TopicPartition, ...] | None:
    try:
        return tuple(decode_assignment(data).partitions)
    except RemoteProtocolError:
        return None


async def _describe_newer(
    connection: Connection, coordinator_id: int, names: list[str], operations: bool
) -> dict[str, GroupDescription | RequestError]:
    request = consumer.ConsumerGroupDescribeRequest(
        group_ids=names, include_authorized_operations=operations
    )
    response: consumer.ConsumerGroupDescribeResponse = await connection.send(request)
    outcomes: dict[str, GroupDescription | RequestError] = {}
    for group in response.groups:
        name = group.group_id
        if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            outcomes[name] = GroupIdNotFoundError(f"group {name!r} does not exist")
        elif group.error_code:
            outcomes[name] = failure(group.error_code, name, group.error_message)
        else:
            outcomes[name] = GroupDescription(
                name,
                group.group_state,
                CONSUMER,
                group.assignor_name,
                coordinator_id,
                tuple(_newer_member(member) for member in group.members),
                authorized_operations=operations_of(group.authorized_operations),
                epoch=group.group_epoch,
                assignment_epoch=group.assignment_epoch,
            )
    return outcomes


def _newer_member(member: consumer.Member) -> GroupMember:
    return GroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        rack=member.rack_id,
        epoch=member.member_epoch,
        subscribed_topics=tuple(member.subscribed_topic_names),
        subscribed_regex=member.subscribed_topic_regex,
        target=_partitions(member.target_assignment),
    )


def _partitions(assignment: consumer.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )


async def delete_groups(
    client: ClusterClient, names: Collection[str], *, timeout_ms: float | None = None
) -> dict[str, RequestError | None]:
    """Delete groups without members, with their offsets; return the failures by group."""

    async def ask(
        node_id: int, connection: Connection, keys: list[str]
    ) -> dict[str, RequestError | None]:
        response: DeleteGroupsResponse = await connection.send(
            DeleteGroupsRequest(groups_names=keys)
        )
        return {
            result.group_id: failure_or_none(result.error_code, result.group_id)
            for result in response.results
        }

    return await ask_coordinators(client, names, Kind.GROUP, ask, timeout_ms=timeout_ms)


async def remove_members(
    client: ClusterClient,
    name: str,
    members: Iterable[MemberToRemove] | None = None,
    *,
    timeout_ms: float | None = None,
) -> dict[MemberToRemove, RequestError | None]:
    """Remove members of a classic group, or (None) all of them.

    await remove_members(client, "readers", [MemberToRemove(group_instance_id="reader-1")])
    """
    if members is None:
        members = [
            MemberToRemove(group_instance_id=member.instance_id)
            if member.instance_id
            else MemberToRemove(member_id=member.member_id)
            for member in (await describe_group(client, name)).members
        ]
    wanted = list(dict.fromkeys(members))
    if not wanted:
        return {}

    async def ask(connection: Connection) -> dict[MemberToRemove, RequestError | None]:
        static = any(member.group_instance_id is not None for member in wanted)
        least = FIRST_VERSION_OF_MANY if static else 0
        version = connection.version_of(LeaveGroupRequest, at_least=least)
        if version < FIRST_VERSION_OF_MANY:
            return {member: await _remove_one(connection, name, member) for member in wanted}
        request = LeaveGroupRequest(group_id=name, members=[_identity(each) for each in wanted])
        response: LeaveGroupResponse = await connection.send(request, version=version)
        check(response.error_code, name)
        codes: Mapping[tuple[str, str | None], int] = {
            (member.member_id, member.group_instance_id): member.error_code
            for member in response.members
        }
        return {
            member: failure_or_none(
                codes[member.member_id or "", member.group_instance_id],
                member.group_instance_id or member.member_id,
            )
            for member in wanted
        }

    return await at_coordinator(client, name, Kind.GROUP, ask, timeout_ms=timeout_ms)


async def _remove_one(
    connection: Connection, name: str, member: MemberToRemove
) -> RequestError | None:
    request = LeaveGroupRequest(group_id=name, member_id=member.member_id or "")
    response: LeaveGroupResponse = await connection.send(request)
    return failure_or_none(response.error_code, member.member_id)


def _identity(member: MemberToRemove) -> MemberIdentity:
    return MemberIdentity(
        member_id=member.member_id or "",
        group_instance_id=member.group_instance_id,
        reason=member.reason,
    )
