"""Kafka's own tool for ACLs against our broker: what one adds, the other lists."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.interop.conftest import Tool
from tools.apache_kafka import Distribution

from barnabas.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from barnabas.blocking.admin import KafkaAdminClient
from barnabas.testing import Cluster

pytestmark = pytest.mark.interop

EVERYTHING = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)
PREFIXED = ACLResourcePatternType.PREFIXED


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    options = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with Cluster(options=options) as cluster:
        yield cluster


@pytest.fixture
def acls(kafka: Distribution, cluster: Cluster) -> Tool:
    def run(*arguments: str, input: str | None = None, code: int = 0) -> str:
        done = kafka.run(
            "kafka-acls", "--bootstrap-server", cluster.bootstrap, *arguments, input=input
        )
        output = done.stdout + done.stderr
        assert done.returncode == code, output
        return output

    return run


@pytest.fixture
def admin(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    client.delete_acls([EVERYTHING])
    yield client
    client.close()


def stored(admin: KafkaAdminClient) -> set[tuple[str, str, str, bool]]:
    found, _ = admin.describe_acls(EVERYTHING)
    return {
        (
            acl.principal,
            acl.operation.name,
            f"{acl.resource_pattern.resource_type.name}:{acl.resource_pattern.resource_name}",
            acl.resource_pattern.pattern_type is PREFIXED,
        )
        for acl in found
    }


def test_the_shortcuts(acls: Tool, admin: KafkaAdminClient) -> None:
    """What Kafka's tool grants producers and consumers is what ours grants them."""
    who = ("--add", "--allow-principal", "User:app")
    acls(*who, "--producer", "--topic", "logs-", "--resource-pattern-type", "prefixed")
    acls(*who, "--consumer", "--topic", "orders", "--group", "app")
    assert stored(admin) == {
        ("User:app", "WRITE", "TOPIC:logs-", True),
        ("User:app", "DESCRIBE", "TOPIC:logs-", True),
        ("User:app", "CREATE", "TOPIC:logs-", True),
        ("User:app", "READ", "TOPIC:orders", False),
        ("User:app", "DESCRIBE", "TOPIC:orders", False),
        ("User:app", "READ", "GROUP:app", False),
    }


def test_ours_are_listed_and_removed_by_kafkas(acls: Tool, admin: KafkaAdminClient) -> None:
    pattern = ResourcePattern(ResourceType.TOPIC, "orders")
    deny = ACL("User:eve", "192.0.2.1", ACLOperation.ALL, ACLPermissionType.DENY, pattern)
    admin.create_acls([deny])
    listed = acls("--list", "--topic", "orders", "--resource-pattern-type", "match")
    assert "principal=User:eve, host=192.0.2.1, operation=ALL, permissionType=DENY" in listed
    acls(
        *("--remove", "--deny-principal", "User:eve", "--deny-host", "192.0.2.1"),
        *("--operation", "All", "--topic", "orders", "--force"),
    )
    assert stored(admin) == set()
