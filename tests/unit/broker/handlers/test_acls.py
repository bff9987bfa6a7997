"""CreateAcls, DescribeAcls and DeleteAcls, authorized operations, and the audit log."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.broker.coordinated import COORDINATED, find
from tests.unit.broker.principals import authenticate
from tests.unit.broker.serving import Serving, Wire, create_topic

from barnabas.broker.handlers.acl_requests import NO_AUTHORIZER
from barnabas.model.error_codes import ErrorCode
from barnabas.security.acl import Binding, Entry, Pattern, PatternType, Permission
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.security.principal import ANONYMOUS, Principal
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

ANY, MATCH, LITERAL, PREFIXED = 1, 2, 3, 4
TOPIC, USER = 2, 7
READ, ALLOW = 3, 3
OPTIONS = {
    **COORDINATED,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:admin;{ANONYMOUS}",
    "auto.create.topics.enable": "true",
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("secured"), OPTIONS) as running:
        yield running


@pytest.fixture
def admin(secured: Serving) -> Iterator[Wire]:
    """A super user; every ACL is gone after the test."""
    with secured.connect() as wire:
        yield wire
        delete(wire)
    secured.expect_no_lines()


def creation(**fields: Any) -> AclCreation:
    return AclCreation(
        **{
            "resource_type": TOPIC,
            "resource_name": "t",
            "principal": "User:a",
            "host": "*",
            "operation": READ,
            "permission_type": ALLOW,
            **fields,
        }
    )


def create(wire: Wire, *creations: AclCreation, version: int = 3) -> list[int]:
    results = wire.ask(CreateAclsRequest(creations=list(creations)), version).results
    assert all((each.error_message is None) == (each.error_code == 0) for each in results)
    return [each.error_code for each in results]


def wanted(**fields: Any) -> dict[str, Any]:
    return {
        "resource_type_filter": ANY,
        "resource_name_filter": None,
        "pattern_type_filter": ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": ANY,
        "permission_type": ANY,
        **fields,
    }


def describe(wire: Wire, version: int = 3, **fields: Any) -> list[tuple[int, str, int, int]]:
    response = wire.ask(DescribeAclsRequest(**wanted(**fields)), version)
    assert response.error_code == 0, response
    return [
        (each.resource_type, each.resource_name, each.pattern_type, len(each.acls))
        for each in response.resources
    ]


def delete(wire: Wire, version: int = 3, **fields: Any) -> Any:
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**wanted(**fields))])
    (result,) = wire.ask(request, version).filter_results
    return result


def test_the_life_of_an_acl(admin: Wire) -> None:
    assert create(admin, creation(), creation(principal="User:b"), creation()) == [0, 0, 0]
    assert create(admin, creation(resource_name="p", resource_pattern_type=PREFIXED)) == [0]
    assert describe(admin) == [(TOPIC, "p", PREFIXED, 1), (TOPIC, "t", LITERAL, 2)]
    assert describe(admin, resource_name_filter="pot", pattern_type_filter=MATCH) == [
        (TOPIC, "p", PREFIXED, 1)
    ]
    result = delete(admin, principal_filter="User:b")
    ((gone),) = result.matching_acls
    assert (gone.resource_name, gone.principal, gone.error_code) == ("t", "User:b", 0)
    assert describe(admin) == [(TOPIC, "p", PREFIXED, 1), (TOPIC, "t", LITERAL, 1)]
    assert delete(admin, principal_filter="User:b").matching_acls == []


@pytest.mark.parametrize("version", range(4))
def test_every_version(admin: Wire, version: int) -> None:
    """v0 knows literal names alone, v3 has users."""
    assert create(admin, creation(), version=version) == [0]
    pattern: dict[str, Any] = {"pattern_type_filter": LITERAL}
    assert describe(admin, version, **pattern) == [(TOPIC, "t", LITERAL, 1)]
    assert len(delete(admin, version, **pattern).matching_acls) == 1
    assert describe(admin, version, **pattern) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"resource_type": 0},
        {"resource_type": 1},
        {"resource_type": 99},
        {"resource_pattern_type": ANY},
        {"resource_pattern_type": MATCH},
        {"operation": 0},
        {"operation": ANY},
        {"permission_type": ANY},
        {"principal": "alice"},
        {"resource_name": ""},
        {"resource_name": "a/b"},
        {"resource_type": 4, "resource_name": "my-cluster"},
    ],
    ids=str,
)
def test_what_cannot_be_created(admin: Wire, fields: dict[str, Any]) -> None:
    """The others of the request are."""
    assert create(admin, creation(**fields), creation()) == [ErrorCode.INVALID_REQUEST, 0]
    assert describe(admin) == [(TOPIC, "t", LITERAL, 1)]


def test_unknown_codes_in_filters(admin: Wire) -> None:
    response = admin.ask(DescribeAclsRequest(**wanted(operation=0)), 3)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert delete(admin, permission_type=17).error_code == ErrorCode.INVALID_REQUEST


def test_acls_survive_a_restart(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("kept")
    with Serving(directory, OPTIONS) as first, first.connect() as wire:
        assert create(wire, creation(resource_type=USER, resource_name="User:x", operation=13)) == [
            0
        ]
    with Serving(directory, OPTIONS) as again, again.connect() as wire:
        assert describe(wire) == [(USER, "User:x", LITERAL, 1)]


def test_without_an_authorizer(wire: Wire) -> None:
    """Kafka's code and, for DescribeAcls, its text."""
    assert create(wire, creation()) == [ErrorCode.SECURITY_DISABLED]
    assert delete(wire).error_code == ErrorCode.SECURITY_DISABLED
    response = wire.ask(DescribeAclsRequest(**wanted()), 3)
    assert response.error_code == ErrorCode.SECURITY_DISABLED
    assert response.error_message == NO_AUTHORIZER == "No Authorizer is configured on the broker"


# as a user who is not a super user


class Client:
    """A connection whose principal is set, and ACLs of that principal."""

    def __init__(self, serving: Serving, wire: Wire) -> None:
        self._serving = serving
        self.wire = wire

    def may(
        self, *granted: tuple[Operation, ResourceType, str], deny: Operation | None = None
    ) -> None:
        bindings = [
            Binding(Pattern(kind, name), Entry("User:eve", "*", operation, Permission.ALLOW))
            for operation, kind, name in granted
        ]
        if deny is not None:
            entry = Entry("User:eve", "*", deny, Permission.DENY)
            bindings.append(Binding(Pattern(ResourceType.TOPIC, "", PatternType.PREFIXED), entry))
        authorizer: Any = self._serving.broker.authorizer
        self._serving.inside(lambda: authorizer.load(bindings))


@pytest.fixture
def client(secured: Serving) -> Iterator[Client]:
    with secured.connect() as wire:
        authenticate(secured, wire, Principal("User", "eve"))
        yield Client(secured, wire)
    authorizer: Any = secured.broker.authorizer
    secured.inside(lambda: authorizer.load([]))


def test_authorized_operations(client: Client) -> None:
    """The topic's as allowed; the cluster's only to those who may describe it."""
    client.may(
        (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME),
        (Operation.ALL, ResourceType.TOPIC, "seen"),
    )
    made = CreateTopicsRequest(
        topics=[CreatableTopic(name="seen", num_partitions=1, replication_factor=1)]
    )
    (result,) = client.wire.ask(made, 7).topics
    assert result.error_code == 0
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="seen")],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    response = client.wire.ask(request, 8)
    assert response.topics[0].topic_authorized_operations == 0b1101_1111_1000
    assert response.cluster_authorized_operations == 0
    describing = DescribeClusterRequest(include_cluster_authorized_operations=True)
    assert client.wire.ask(describing, 0).cluster_authorized_operations == 0
    client.may(
        (Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME),
        (Operation.ALL, ResourceType.TOPIC, "seen"),
        deny=Operation.READ,
    )
    response = client.wire.ask(request, 8)
    assert response.topics[0].topic_authorized_operations == 0xDF0
    alter_and_describe = 1 << Operation.ALTER | 1 << Operation.DESCRIBE
    assert response.cluster_authorized_operations == alter_and_describe
    assert client.wire.ask(describing, 0).cluster_authorized_operations == alter_and_describe


def test_a_created_topic_is_described_only_to_those_who_may(client: Client) -> None:
    """It is created all the same."""
    client.may((Operation.CREATE, ResourceType.TOPIC, "blind"))
    new = CreatableTopic(name="blind", num_partitions=3, replication_factor=1)
    (result,) = client.wire.ask(CreateTopicsRequest(topics=[new]), 7).topics
    assert result.error_code == 0
    assert result.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, None)
    (denied,) = client.wire.ask(
        CreateTopicsRequest(
            topics=[CreatableTopic(name="other", num_partitions=1, replication_factor=1)]
        ),
        7,
    ).topics
    assert denied.error_message == "Authorization failed."


def test_denials_and_changes_are_audited(
    secured: Serving, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """With the API, the rule, and no line for what only filters an answer."""
    with secured.connect() as wire:
        create_topic(wire, "audited")
    caplog.set_level(logging.INFO, "barnabas.audit")
    secured.inside(secured.broker.audit.flush)
    caplog.clear()
    client.may((Operation.READ, ResourceType.TOPIC, "audited"), deny=Operation.DESCRIBE)
    named = MetadataRequest(topics=[MetadataRequestTopic(name="audited")])
    client.wire.ask(named, 9)
    client.wire.ask(MetadataRequest(topics=None), 9)
    client.wire.ask(CreateAclsRequest(creations=[creation()]), 3)
    lines = [json.loads(each.getMessage()) for each in caplog.records]
    described, altered = lines
    assert {
        "principal": "User:eve",
        "host": "127.0.0.1",
        "listener": "PLAINTEXT",
        "api": "Metadata",
        "operation": "DESCRIBE",
        "resource": "Topic:audited",
        "result": "denied",
    }.items() <= described.items()
    assert described["rule"].startswith("User:eve has DENY permission for DESCRIBE")
    assert (altered["api"], altered["resource"]) == ("CreateAcls", "Cluster:kafka-cluster")
    assert altered["rule"] == "the resource has no ACLs"


def test_expressions_match_only_what_their_sender_may_describe(
    secured: Serving, client: Client
) -> None:
    """The names of others stay hidden."""
    with secured.connect() as wire:
        find(wire, "readers")
        seen, hidden = create_topic(wire, "expr-seen"), create_topic(wire, "expr-hidden")
    assert seen != hidden
    group = (Operation.READ, ResourceType.GROUP, "readers")
    client.may(group, (Operation.DESCRIBE, ResourceType.TOPIC, "expr-seen"))
    join = ConsumerGroupHeartbeatRequest(
        group_id="readers",
        member_id="0123456789012345678901",
        rebalance_timeout_ms=60_000,
        subscribed_topic_regex="expr-.*",
        topic_partitions=[],
    )
    response = client.wire.ask(join, 1)
    assert response.error_code == 0, response
    assert [each.topic_id for each in response.assignment.topic_partitions] == [seen]
