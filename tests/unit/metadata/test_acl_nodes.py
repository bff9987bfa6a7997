"""ACLs in the tree, byte for byte as Kafka 3.9 writes them."""

from __future__ import annotations

import pytest

from barnabas.metadata import acl_nodes as nodes
from barnabas.model.errors import CorruptFileError
from barnabas.security.acl.binding import Entry, Pattern, PatternType, Permission
from barnabas.security.authorizer import Operation, ResourceType

LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC = ResourceType.TOPIC


def test_paths() -> None:
    assert nodes.acl_path(Pattern(TOPIC, "orders")) == "/kafka-acl/Topic/orders"
    assert nodes.acl_path(Pattern(ResourceType.GROUP, "*")) == "/kafka-acl/Group/*"
    prefix = Pattern(ResourceType.TRANSACTIONAL_ID, "app-", PREFIXED)
    assert nodes.acl_path(prefix) == "/kafka-acl-extended/prefixed/TransactionalId/app-"
    assert nodes.notice_path(LITERAL) == "/kafka-acl-changes/acl_changes_"
    assert nodes.notice_path(PREFIXED) == "/kafka-acl-extended-changes/acl_changes_"


def test_entries() -> None:
    entries = [
        Entry("User:alice", "*", Operation.READ, Permission.ALLOW),
        Entry("User:bob", "10.0.0.1", Operation.IDEMPOTENT_WRITE, Permission.DENY),
    ]
    data = nodes.encode_entries(entries)
    assert data == (
        b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow",'
        b'"operation":"Read","host":"*"},{"principal":"User:bob","permissionType":"Deny",'
        b'"operation":"IdempotentWrite","host":"10.0.0.1"}]}'
    )
    assert nodes.decode_entries("/n", data) == frozenset(entries)
    assert nodes.decode_entries("/n", b"") == frozenset()


@pytest.mark.parametrize(
    "data",
    [
        b"no json",
        b"[]",
        b"{}",
        b'{"acls":[{}]}',
        b'{"acls":[{"principal":"User:a","permissionType":"Allow","operation":"Fly","host":"*"}]}',
    ],
)
def test_unreadable_entries(data: bytes) -> None:
    with pytest.raises(CorruptFileError, match="/n"):
        nodes.decode_entries("/n", data)


@pytest.mark.parametrize(
    ("pattern", "data"),
    [
        (Pattern(TOPIC, "a:b"), b"TOPIC:a:b"),
        (Pattern(ResourceType.DELEGATION_TOKEN, "x"), b"DELEGATION_TOKEN:x"),
        (
            Pattern(TOPIC, "n", PREFIXED),
            b'{"version":1,"resourceType":"TOPIC","name":"n","patternType":"PREFIXED"}',
        ),
    ],
)
def test_notices(pattern: Pattern, data: bytes) -> None:
    assert nodes.encode_notice(pattern) == data
    assert nodes.decode_notice("/n", data, pattern.pattern_type) == pattern


def test_notices_of_older_releases() -> None:
    pattern = Pattern(ResourceType.TRANSACTIONAL_ID, "x")
    assert nodes.decode_notice("/n", b"TransactionalId:x", LITERAL) == pattern


@pytest.mark.parametrize(
    ("data", "pattern_type"),
    [(b"orders", LITERAL), (b"PLANET:x", LITERAL), (b"\xff:x", LITERAL), (b"{}", PREFIXED)],
)
def test_unreadable_notices(data: bytes, pattern_type: PatternType) -> None:
    with pytest.raises(CorruptFileError, match="/n"):
        nodes.decode_notice("/n", data, pattern_type)
