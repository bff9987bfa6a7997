"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup in all their versions.

Pure: who the member is and which version is spoken come in, a message goes out. What an old broker
cannot be told is left out where that does no harm; an instance id is refused, because without it
the member would not be what the user asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from barnabas.consumer.group.settings import GroupSettings
from barnabas.model.request_errors import UnsupportedVersionError
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

PROTOCOL_TYPE: Final = "consumer"
REASON_LENGTH_MAX: Final = 255

_JOIN_INSTANCE_VERSION: Final = 5
_INSTANCE_VERSION: Final = 3  # of SyncGroup and Heartbeat
_LEAVE_MEMBERS_VERSION: Final = 3


class Self(NamedTuple):
    """The member that asks."""

    member_id: str
    generation: int


def join_request(
    settings: GroupSettings,
    member_id: str,
    protocols: Sequence[tuple[str, bytes]],
    reason: str | None,
    version: int,
) -> JoinGroupRequest:
    """Ask to be in the next generation, offering assignors and their metadata."""
    if settings.instance_id is not None and version < _JOIN_INSTANCE_VERSION:
        raise UnsupportedVersionError(
            f"group.instance.id={settings.instance_id}: the broker is too old for static members "
            f"(JoinGroup version {version}, they need {_JOIN_INSTANCE_VERSION})"
        )
    return JoinGroupRequest(
        group_id=settings.group_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.rebalance_ms_max,
        member_id=member_id,
        group_instance_id=settings.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=[
            JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols
        ],
        reason=None if reason is None else reason[:REASON_LENGTH_MAX],
    )


def sync_request(
    settings: GroupSettings,
    member: Self,
    protocol: str | None,
    assignments: Mapping[str, bytes],
    version: int,
) -> SyncGroupRequest:
    """Ask for the assignment; the leader brings everybody's."""
    return SyncGroupRequest(
        group_id=settings.group_id,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=settings.instance_id if version >= _INSTANCE_VERSION else None,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol,
        assignments=[
            SyncGroupRequestAssignment(member_id=name, assignment=assignment)
            for name, assignment in assignments.items()
        ],
    )


def heartbeat_request(settings: GroupSettings, member: Self, version: int) -> HeartbeatRequest:
    """Tell that the member lives."""
    return HeartbeatRequest(
        group_id=settings.group_id,
        generation_id=member.generation,
        member_id=member.member_id,
        group_instance_id=settings.instance_id if version >= _INSTANCE_VERSION else None,
    )


def leave_request(
    settings: GroupSettings, member_id: str, reason: str, version: int
) -> LeaveGroupRequest:
    """Tell that the member goes."""
    if version < _LEAVE_MEMBERS_VERSION:
        return LeaveGroupRequest(group_id=settings.group_id, member_id=member_id)
    identity = MemberIdentity(
        member_id=member_id,
        group_instance_id=settings.instance_id,
        reason=reason[:REASON_LENGTH_MAX],
    )
    return LeaveGroupRequest(group_id=settings.group_id, members=[identity])


def leave_error(response: LeaveGroupResponse) -> int:
    """Return the error code of an answer, the member's own if there is one."""
    return response.error_code or next((each.error_code for each in response.members), 0)
