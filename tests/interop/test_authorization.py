"""The acceptance table of authorization, run against Apache Kafka 3.9 with its own authorizer.

`DIFFERENT` names the rows in which ours follows 4.x, or is stricter.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.authorization import CLIENT, Rehearsal, cases
from tests.unit.broker.serving import Wire
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import free_port

from barnabas.broker.handlers.authorization import Case
from barnabas.security.acl import Binding
from barnabas.wire.apis import API_BY_NAME
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.wire.messages.describe_acls import DescribeAclsRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.wire.schema import Message

pytestmark = pytest.mark.interop

WAIT_S = 30.0
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"

DIFFERENT = {
    ("ConsumerGroupHeartbeat", "a member"): "4.x also needs DESCRIBE on the subscribed topics",
    ("ConsumerGroupDescribe", "a group"): "4.x also needs DESCRIBE on the topics of members",
    ("DeleteTopics", "by id"): "with KRaft, DELETE is enough even if DESCRIBE is denied",
    ("DescribeConfigs", "a group"): "groups have configs in 4.x",
    ("AlterConfigs", "a group"): "groups have configs in 4.x",
    ("IncrementalAlterConfigs", "a group"): "groups have configs in 4.x",
}
NOT_WITH_KRAFT = {("OffsetFetch", 0)}
"""Versions that are about offsets in ZooKeeper."""

ANYTHING: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


class Apache:
    """Apache Kafka; the super user comes without a name, the client with a password."""

    broker_id = 1

    def __init__(self, admin: Wire, client: Wire) -> None:
        self._admin = admin
        self._client = client
        listed = admin.ask(ApiVersionsRequest(), 0).api_keys
        self._versions = {each.api_key: (each.min_version, each.max_version) for each in listed}

    def versions(self, api: str) -> range:
        known = API_BY_NAME[api]
        first, last = self._versions.get(known.key, (0, -1))
        ours = known.stable_versions
        return range(max(first, ours.first), min(last, ours.last) + 1)

    def ask(self, request: Message, version: int, *, admin: bool = False) -> Any:
        return (self._admin if admin else self._client).ask(request, version)

    def set_acls(self, bindings: list[Binding]) -> None:
        self.ask(DeleteAclsRequest(filters=[DeleteAclsFilter(**ANYTHING)]), 3, admin=True)
        self._await(0)
        creations = [
            AclCreation(
                resource_type=pattern.resource_type,
                resource_name=pattern.name,
                resource_pattern_type=pattern.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for pattern, entry in bindings
        ]
        if creations:
            for result in self.ask(CreateAclsRequest(creations=creations), 3, admin=True).results:
                assert result.error_code == 0, result
            self._await(len(set(bindings)))

    def _await(self, count: int) -> None:
        """Wait until the broker has learned of a change, which its controller has confirmed."""
        deadline = time.monotonic() + WAIT_S
        while True:
            told = self.ask(DescribeAclsRequest(**ANYTHING), 3, admin=True)
            if sum(len(resource.acls) for resource in told.resources) == count:
                return
            assert time.monotonic() < deadline, told


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apache]:
    try:
        kafka = Distribution.fetch("3.9")
    except Unavailable as why:
        pytest.skip(str(why))
    plain, sasl, controller = free_port(), free_port(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}"
    options = {
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": listeners,
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"
        ),
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{LOGIN} user_alice="secret";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
        "transaction.state.log.num.partitions": "4",
        "offsets.topic.num.partitions": "4",
        "group.coordinator.rebalance.protocols": "classic,consumer",
    }
    data_dir = tmp_path_factory.mktemp("apache-acl") / "data"
    broker = kafka.start(data_dir, port=plain, options=options, heap="512m")
    try:
        with Wire(("127.0.0.1", plain)) as admin, Wire(("127.0.0.1", sasl)) as client:
            log_in(client, CLIENT.removeprefix("User:"), "secret")
            yield Apache(admin, client)
    finally:
        broker.stop()


def log_in(wire: Wire, user: str, password: str) -> None:
    """Authenticate with PLAIN."""
    assert wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
    token = f"\0{user}\0{password}".encode()
    assert wire.ask(SaslAuthenticateRequest(auth_bytes=token), 1).error_code == 0


@pytest.mark.parametrize(
    ("api", "case"), cases(), ids=lambda part: part.name if isinstance(part, Case) else part
)
def test_kafka_answers_as_the_table_says(apache: Apache, api: str, case: Case) -> None:
    """The first and the last version of each case: each takes a second there."""
    versions = [
        version
        for version in apache.versions(api)
        if case.covers(version) and (api, version) not in NOT_WITH_KRAFT
    ]
    if not versions:
        pytest.skip("not served by Apache Kafka 3.9 with KRaft")
    if (api, case.name) in DIFFERENT:
        pytest.skip(f"known difference: {DIFFERENT[api, case.name]}")
    rehearsal = Rehearsal(apache, api, case)
    for version in dict.fromkeys([versions[0], versions[-1]]):
        rehearsal.run(version)
