"""What is asked about a request for another broker: all that its handler would ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.broker.door.requests import RULES, Kind, Question, code_of, without_side_effects
from barnabas.broker.handlers.authorization import AUTHORIZATION
from barnabas.model.ids import Uuid
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.apis import API_BY_NAME
from barnabas.wire.messages.fetch import FetchRequest, ReplicaState
from barnabas.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.schema import Message

TOPIC_ID = Uuid(b"\x07" * 16)
NARROWED = {
    "ListGroups": {
        (Operation.DESCRIBE, ResourceType.CLUSTER),
        (Operation.DESCRIBE, ResourceType.GROUP),
    },
    "ListTransactions": {(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)},
    "DescribeTransactions": {(Operation.DESCRIBE, ResourceType.TOPIC)},
    "ConsumerGroupDescribe": {(Operation.DESCRIBE, ResourceType.TOPIC)},
    "OffsetFetch": {(Operation.DESCRIBE, ResourceType.TOPIC)},
}
"""What is asked about the parts of a response, and not about the request."""
NOT_SENT = {
    "Fetch": {(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)},  # as a follower
    "OffsetForLeaderEpoch": {(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)},
    "WriteTxnMarkers": {(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)},
    "InitProducerId": {(Operation.WRITE, ResourceType.TOPIC)},
    "DeleteTopics": {(Operation.DESCRIBE, ResourceType.TOPIC)},  # DELETE implies it
    "DescribeConfigs": set(),
}
"""Alternatives that a user of the console has no use for: without them it is only denied."""


def filled(kind: Any) -> Any:
    """Return a message whose arrays have one element, and whose strings are set."""
    message = kind()
    for field in kind.FIELDS:
        value: Any = None
        if field.struct is not None:
            value = filled(field.struct)
        elif field.kind == "string":
            value = "name"
        elif field.kind == "uuid":
            value = TOPIC_ID
        elif field.name == "resource_type":
            value = 2
        if value is not None:
            setattr(message, field.name, [value] if field.is_array else value)
    return message


def asked(request: Message, api: str) -> set[tuple[Operation, ResourceType]]:
    rule = RULES[api]
    assert rule.questions is not None
    found: Iterator[Question] = iter(rule.questions(request, lambda topic_id: "name"))
    return {permission for question in found for permission in question.any_of}


@pytest.mark.parametrize("api", sorted(each for each, rule in RULES.items() if rule.questions))
def test_the_questions_are_those_of_the_handler(api: str) -> None:
    wanted = {
        tuple(permission)
        for case in AUTHORIZATION[api]
        for need in case.needs
        for permission in need.any_of
    }
    request = filled(API_BY_NAME[api].request)
    got = asked(request, api)
    if api in ("DescribeConfigs", "IncrementalAlterConfigs"):
        for number in (4, 32):
            request.resources[0].resource_type = number
            got |= asked(request, api)
    if api == "InitProducerId":
        request.transactional_id = None
        got |= asked(request, api)
    missing = wanted - got - NARROWED.get(api, set()) - NOT_SENT.get(api, set())
    assert missing == set()
    assert got <= wanted, "it asks for more than the handler"
    assert (RULES[api].narrow is not None) == (api in NARROWED)


def test_an_api_that_any_broker_answers_is_never_forwarded() -> None:
    for api, rule in RULES.items():
        if rule.questions is None:
            assert rule.narrow is None, api
            assert rule.kind is not Kind.RECORDS, api


def test_the_code_of_a_denial_is_that_of_its_resource() -> None:
    question = Question(
        ((Operation.CREATE, ResourceType.CLUSTER), (Operation.CREATE, ResourceType.TOPIC)), "x"
    )
    assert code_of(question).name == "TOPIC_AUTHORIZATION_FAILED"


def test_a_list_of_groups_is_narrowed_to_those_that_one_may_describe() -> None:
    def names(*visible: tuple[Operation, ResourceType, str]) -> list[str]:
        response = ListGroupsResponse(groups=[ListedGroup(group_id="a"), ListedGroup(group_id="b")])
        narrow = RULES["ListGroups"].narrow
        assert narrow is not None
        narrow(response, lambda *question: question in visible)
        return [each.group_id for each in response.groups]

    assert names() == []
    assert names((Operation.DESCRIBE, ResourceType.GROUP, "b")) == ["b"]
    assert names((Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)) == ["a", "b"]


def test_requests_neither_create_topics_nor_come_from_followers() -> None:
    metadata = MetadataRequest(topics=None, allow_auto_topic_creation=True)
    assert not without_side_effects(metadata).allow_auto_topic_creation  # type: ignore[attr-defined]
    fetch = FetchRequest(replica_id=3, replica_state=ReplicaState(replica_id=3))
    without_side_effects(fetch)
    assert (fetch.replica_id, fetch.replica_state) == (-1, None)
