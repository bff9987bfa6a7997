"""Consumer groups: list, describe and delete them; read and set their committed offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from barnabas.admin.coordinators import Kind, at_coordinator, capped, check, find_coordinator
from barnabas.admin.leaders import by_topic
from barnabas.assignment.embedded import decode_assignment
from barnabas.client.connection import Connection
from barnabas.client.switchboard import Switchboard
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RemoteProtocolError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from barnabas.wire.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

CLASSIC, CONSUMER = "classic", "consumer"
CONSUMER_PROTOCOL = "consumer"
"""The protocol type of groups whose assignments are lists of partitions."""

DEAD = "Dead"
LAST_NAMED_VERSION = 7
"""Of OffsetFetch and OffsetCommit: one group per request, topics by their names."""

LAST_DEAD_VERSION = 5
"""Of DescribeGroups: a group that does not exist is dead, which is no error."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in one line; state and type are empty where the broker is too old to tell."""

    name: str
    state: str
    type: str
    protocol_type: str


@dataclass(frozen=True, slots=True)
class GroupMember:
    """Somebody in a group, and what is assigned to it (None if that cannot be read)."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: tuple[TopicPartition, ...] | None


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A group with its members."""

    name: str
    state: str
    type: str
    assignor: str
    coordinator_id: int
    members: tuple[GroupMember, ...]


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """How far a group has read a partition."""

    offset: int
    leader_epoch: int
    metadata: str


async def list_groups(
    board: Switchboard, states: Iterable[str] = (), types: Iterable[str] = ()
) -> list[ListedGroup]:
    """Return the groups of all brokers, in the order of their names."""
    wanted_states, wanted_types = list(states), list(types)

    async def ask(broker_id: int) -> ListGroupsResponse:
        connection = await board.connection(broker_id)
        version = connection.version_of(ListGroupsRequest)
        request = ListGroupsRequest(
            states_filter=wanted_states if version >= 4 else [],
            types_filter=wanted_types if version >= 5 else [],
        )
        response: ListGroupsResponse = await connection.send(request, version=version)
        check(response.error_code, f"groups of broker {broker_id}")
        return response

    async def attempt() -> list[ListGroupsResponse]:
        return await asyncio.gather(*(ask(broker_id) for broker_id in board.cluster.brokers))

    return sorted(
        (
            ListedGroup(group.group_id, group.group_state, group.group_type, group.protocol_type)
            for response in await board.retrying(attempt)
            for group in response.groups
        ),
        key=lambda group: group.name,
    )


async def describe_group(board: Switchboard, name: str) -> GroupDescription:
    """Return a group with its members; raises GROUP_ID_NOT_FOUND."""
    coordinator_id = await board.retrying(lambda: find_coordinator(board, name, Kind.GROUP))

    async def ask(connection: Connection) -> GroupDescription | None:
        return await _classic(connection, name, coordinator_id) or await _consumer(
            connection, name, coordinator_id
        )

    described = await at_coordinator(board, name, Kind.GROUP, ask)
    if described is None:
        raise RequestError(ErrorCode.GROUP_ID_NOT_FOUND, f"there is no group {name!r}")
    return described


async def _classic(
    connection: Connection, name: str, coordinator_id: int
) -> GroupDescription | None:
    version = capped(connection, DescribeGroupsRequest, LAST_DEAD_VERSION)
    request = DescribeGroupsRequest(groups=[name])
    response: DescribeGroupsResponse = await connection.send(request, version=version)
    (group,) = response.groups
    check(group.error_code, name)
    if group.group_state == DEAD:
        return None
    is_readable = group.protocol_type == CONSUMER_PROTOCOL
    return GroupDescription(
        name,
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
            )
            for member in group.members
        ),
    )


def _assigned(data: bytes) -> tuple[TopicPartition, ...] | None:
    try:
        return tuple(decode_assignment(data))
    except RemoteProtocolError:
        return None


async def _consumer(
    connection: Connection, name: str, coordinator_id: int
) -> GroupDescription | None:
    key = ConsumerGroupDescribeRequest.KEY
    assert key is not None
    if not connection.versions.supports(key):
        return None
    request = ConsumerGroupDescribeRequest(group_ids=[name])
    response: ConsumerGroupDescribeResponse = await connection.send(request)
    (group,) = response.groups
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    check(group.error_code, name)
    return GroupDescription(
        name,
        group.group_state,
        CONSUMER,
        group.assignor_name,
        coordinator_id,
        tuple(
            GroupMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                tuple(
                    TopicPartition(topic.topic_name, number)
                    for topic in member.assignment.topic_partitions
                    for number in topic.partitions
                ),
            )
            for member in group.members
        ),
    )


async def group_offsets(board: Switchboard, name: str) -> dict[TopicPartition, CommittedOffset]:
    """Return all that a group has committed, in the order of topics and partitions."""

    async def ask(connection: Connection) -> OffsetFetchResponse:
        request = OffsetFetchRequest(group_id=name, topics=None)
        version = capped(connection, OffsetFetchRequest, LAST_NAMED_VERSION)
        response: OffsetFetchResponse = await connection.send(request, version=version)
        check(response.error_code, name)
        return response

    response = await at_coordinator(board, name, Kind.GROUP, ask)
    found = {
        TopicPartition(topic.name, result.partition_index): CommittedOffset(
            result.committed_offset, result.committed_leader_epoch, result.metadata or ""
        )
        for topic in response.topics
        for result in topic.partitions
        if result.committed_offset >= 0
    }
    return {partition: found[partition] for partition in sorted(found)}


async def commit_offsets(
    board: Switchboard, name: str, offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, RequestError | None]:
    """Set offsets of a group that nobody is in; return what failed, by partition."""

    async def ask(connection: Connection) -> OffsetCommitResponse:
        request = OffsetCommitRequest(
            group_id=name,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=index,
                            committed_offset=offsets[TopicPartition(topic, index)],
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(offsets).items()
            ],
        )
        version = capped(connection, OffsetCommitRequest, LAST_NAMED_VERSION)
        response: OffsetCommitResponse = await connection.send(request, version=version)
        for topic in response.topics:
            for result in topic.partitions:
                code = ErrorCode.of(result.error_code)
                if code.retriable and code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise RequestError(code, f"{name}: {code.meaning}")
        return response

    response = await at_coordinator(board, name, Kind.GROUP, ask)
    outcomes: dict[TopicPartition, RequestError | None] = {}
    for topic in response.topics:
        for result in topic.partitions:
            partition, code = (
                TopicPartition(topic.name, result.partition_index),
                ErrorCode.of(result.error_code),
            )
            outcomes[partition] = (
                None
                if code is ErrorCode.NONE
                else RequestError(code, f"{partition}: {code.meaning}")
            )
    return outcomes


async def delete_groups(
    board: Switchboard, names: Collection[str]
) -> dict[str, BarnabasError | None]:
    """Delete groups that nobody is in, with their offsets; return what failed, by group."""

    async def delete(name: str) -> BarnabasError | None:
        async def ask(connection: Connection) -> None:
            request = DeleteGroupsRequest(groups_names=[name])
            response: DeleteGroupsResponse = await connection.send(request)
            check(response.results[0].error_code, name)

        try:
            await at_coordinator(board, name, Kind.GROUP, ask)
        except RequestError as failure:
            return failure
        return None

    return {name: await delete(name) for name in dict.fromkeys(names)}
