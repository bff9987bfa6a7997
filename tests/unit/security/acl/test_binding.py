"""What an ACL may be, and how it is written."""

from __future__ import annotations

import pytest

from barnabas.model.errors import InvalidValueError
from barnabas.security.acl.binding import (
    Binding,
    Entry,
    Pattern,
    PatternType,
    Permission,
    check_binding,
    normal_host,
    title,
)
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.security.principal import Principal, parse_principal

ENTRY = Entry("User:a", "*", Operation.READ, Permission.ALLOW)


def test_names_in_the_tree() -> None:
    assert title(ResourceType.TRANSACTIONAL_ID) == "TransactionalId"
    assert title(Operation.IDEMPOTENT_WRITE) == "IdempotentWrite"
    assert title(Permission.DENY) == "Deny"


@pytest.mark.parametrize(
    ("pattern", "entry"),
    [
        (Pattern(ResourceType.TOPIC, ""), ENTRY),
        (Pattern(ResourceType.TOPIC, "a/b"), ENTRY),
        (Pattern(ResourceType.CLUSTER, "my-cluster"), ENTRY),
        (Pattern(ResourceType.TOPIC, "t"), ENTRY._replace(principal="alice")),
    ],
)
def test_what_cannot_be_stored(pattern: Pattern, entry: Entry) -> None:
    with pytest.raises(InvalidValueError):
        check_binding(Binding(pattern, entry))


@pytest.mark.parametrize(
    ("pattern", "entry"),
    [
        (Pattern(ResourceType.TOPIC, "*"), ENTRY),
        (Pattern(ResourceType.GROUP, "g"), ENTRY._replace(operation=Operation.CREATE)),
        (Pattern(ResourceType.TOPIC, "t"), ENTRY._replace(host="no address")),
        (Pattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.PREFIXED), ENTRY),
    ],
)
def test_useless_ones_are_stored_as_in_kafka(pattern: Pattern, entry: Entry) -> None:
    check_binding(Binding(pattern, entry))


def test_hosts() -> None:
    assert normal_host("0:0:0:0:0:0:0:1") == "::1"
    assert normal_host("::ffff:192.0.2.7") == "192.0.2.7"
    assert normal_host("example.org") == "example.org"
    assert normal_host("*") == "*"


def test_principals() -> None:
    assert parse_principal("User:CN=a,O=b:c") == Principal("User", "CN=a,O=b:c")
    for wrong in ("alice", ":alice", ""):
        with pytest.raises(InvalidValueError):
            parse_principal(wrong)
