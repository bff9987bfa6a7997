"""What administrators see of groups, in every version of their requests."""

from __future__ import annotations

import pytest
from tests.unit.groups.host import Host, commit, join, stable

from barnabas.model.error_codes import ErrorCode
from barnabas.wire.codec import decode, encode
from barnabas.wire.messages.describe_groups import DescribeGroupsResponse
from barnabas.wire.messages.list_groups import ListGroupsResponse


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.mark.parametrize("version", range(7))
def test_description_of_a_group(host: Host, version: int) -> None:
    name = stable(host)
    described = host.coordinator.administration.describe("g", version)
    response = DescribeGroupsResponse(
        groups=[described, host.coordinator.administration.describe("x", version)]
    )
    read, _ = decode(DescribeGroupsResponse, encode(response, version), version)
    group, missing = read.groups
    assert (group.group_state, group.protocol_type) == ("Stable", "consumer")
    assert group.protocol_data == "range"
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (name, "c", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"m", b"mine")
    assert missing.group_state == "Dead"
    not_found = ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else ErrorCode.NONE
    assert missing.error_code == not_found


def test_description_of_an_unsettled_group_hides_what_may_change(host: Host) -> None:
    name = stable(host)
    host.send(join(name, "i"))
    described = host.coordinator.administration.describe("g", 5)
    assert described.group_state == "CompletingRebalance"
    assert described.protocol_data == ""
    assert described.members[0].member_assignment == b""


@pytest.mark.parametrize("version", range(6))
def test_list_of_groups(host: Host, version: int) -> None:
    stable(host)
    host.ask(commit({("t", 0): 1}, group_id="simple"))
    response = ListGroupsResponse(groups=host.coordinator.administration.list_groups())
    read, _ = decode(ListGroupsResponse, encode(response, version), version)
    listed = {(group.group_id, group.protocol_type) for group in read.groups}
    assert listed == {("g", "consumer"), ("simple", "")}
    by_state = host.coordinator.administration.list_groups(states=["stable"])
    assert [group.group_id for group in by_state] == ["g"]
    assert host.coordinator.administration.list_groups(states=["nonsense"]) == []
    assert host.coordinator.administration.list_groups(types=["share"]) == []
