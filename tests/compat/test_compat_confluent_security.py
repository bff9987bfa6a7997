"""Logins, ACLs and users with confluent-kafka and barnabas.compat.confluent_kafka."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from tests.compat.confluent import Confluent
from tests.compat.samples import until_deadline
from tests.compat.secured import PASSWORD, WRONG, Secured, secured_broker

from barnabas.testing import Cluster

pytestmark = pytest.mark.compat


@pytest.fixture(scope="module")
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    if request.config.getoption("--broker") == "apache":
        pytest.skip("tests/interop has Apache Kafka's own listeners")
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(scope="module")
def guarded() -> Iterator[Cluster]:
    """A broker with ACLs."""
    with Cluster(security="sasl_plaintext") as cluster:
        yield cluster


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def test_logins(confluent: Confluent, secured: Secured, name: str, mechanism: str) -> None:
    asked: list[str] = []

    def token(config: str) -> tuple[str, float]:
        asked.append(config)
        return secured.token(), time.time() + 3600

    conf: dict[str, Any] = {
        "bootstrap.servers": secured.addresses["SASL"],
        "security.protocol": "sasl_plaintext",
        "sasl.mechanisms": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        conf |= {"oauth_cb": token, "sasl.oauthbearer.config": "for=alice"}
    else:
        conf |= {"sasl.username": "alice", "sasl.password": PASSWORD}
    producer = confluent.kafka.Producer(conf)
    reports: list[Any] = []
    producer.produce(name, b"v", on_delivery=lambda error, message: reports.append(error))
    assert producer.flush(30) == 0
    assert reports == [None]
    assert set(asked) == ({"for=alice"} if mechanism == "OAUTHBEARER" else set())


def test_credentials_that_are_corrected(confluent: Confluent, secured: Secured, name: str) -> None:
    KafkaError = confluent.kafka.KafkaError
    errors: list[Any] = []
    producer = confluent.kafka.Producer(
        {
            "bootstrap.servers": secured.addresses["SASL"],
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": WRONG,
            "error_cb": errors.append,
        }
    )
    for _ in until_deadline("the login to fail"):
        producer.poll(0.1)
        if KafkaError._AUTHENTICATION in [each.code() for each in errors]:
            break
    producer.set_sasl_credentials("alice", PASSWORD)
    reports: list[Any] = []
    producer.produce(name, b"v", on_delivery=lambda error, message: reports.append(error))
    assert producer.flush(60) == 0
    assert reports == [None]
    with pytest.raises(TypeError):
        producer.set_sasl_credentials("alice", None)


def test_certificates(confluent: Confluent, secured: Secured, name: str) -> None:
    conf = {
        "bootstrap.servers": secured.addresses["ENCRYPTED"],
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
    trusting = {
        "ssl.ca.location": str(secured.cafile),
        "ssl.endpoint.identification.algorithm": "none",
    }
    for more in (trusting, {"enable.ssl.certificate.verification": False}):
        admin = confluent.admin.AdminClient({**conf, **more})
        assert admin.list_topics(timeout=30).cluster_id
    errors: list[Any] = []
    doubting = confluent.kafka.Producer({**conf, "error_cb": errors.append})
    for _ in until_deadline("the certificate to be rejected"):
        doubting.poll(0.1)
        if errors:
            break
    if errors[0].name() != "_ALL_BROKERS_DOWN":
        assert "certificate" in errors[0].str()
        # librdkafka calls it a failed transport when its socket tells that first.
        assert errors[0].name() == "_SSL" or not confluent.ours, errors[0]


def failure_of(confluent: Confluent, future: Future[Any]) -> str:
    with pytest.raises(confluent.kafka.KafkaException) as failure:
        future.result(30)
    return str(failure.value.args[0].name())


def test_acls(confluent: Confluent, guarded: Cluster, name: str) -> None:
    there = confluent.admin
    admin = there.AdminClient(guarded.client_options("admin", style="librdkafka"))

    def binding(operation: str, pattern: str = "LITERAL") -> Any:
        return there.AclBinding("topic", name, pattern, "User:alice", "*", operation, "ALLOW")

    rules = [binding("READ"), binding("WRITE", "PREFIXED")]
    assert [future.result(30) for future in admin.create_acls(rules).values()] == [None, None]
    mine = there.AclBindingFilter(
        there.ResourceType.TOPIC,
        name,
        there.ResourcePatternType.ANY,
        None,
        None,
        there.AclOperation.ANY,
        there.AclPermissionType.ANY,
    )
    assert sorted(admin.describe_acls(mine).result(30)) == sorted(rules)
    (deleted,) = admin.delete_acls([mine]).values()
    assert sorted(deleted.result(30)) == sorted(rules)
    assert admin.describe_acls(mine).result(30) == []
    assert hash(binding("READ")) == hash(rules[0])
    assert binding("READ") != rules[1]
    with pytest.raises(ValueError, match=r"."):
        there.AclBinding("topic", name, "MATCH", "User:alice", "*", "READ", "ALLOW")
    with pytest.raises(ValueError, match=r"."):
        admin.create_acls([rules[0], rules[0]])


def test_what_acls_forbid(confluent: Confluent, guarded: Cluster, name: str) -> None:
    kafka = confluent.kafka
    user = "bob"
    guarded.add_user(user)
    conf = guarded.client_options(user, style="librdkafka")
    reports: list[str] = []
    producer = kafka.Producer(
        {**conf, "on_delivery": lambda error, message: reports.append(error.name())}
    )
    producer.produce(name, b"v")
    assert producer.flush(30) == 0
    assert reports == ["TOPIC_AUTHORIZATION_FAILED"]
    admin = confluent.admin.AdminClient(conf)
    created = admin.create_topics([confluent.admin.NewTopic(name, 1, 1)])[name]
    assert failure_of(confluent, created) == "TOPIC_AUTHORIZATION_FAILED"
    consumer = kafka.Consumer({**conf, "group.id": "not allowed"})
    consumer.subscribe([name])
    for _ in until_deadline("an error"):
        message = consumer.poll(0.1)
        if message is not None:
            break
    assert message.error().name() in ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED")
    assert len(consumer.consume(100, 0.5)) <= 1  # not the same again and again
    consumer.close()


def test_users(confluent: Confluent, guarded: Cluster, name: str) -> None:
    there = confluent.admin
    admin = there.AdminClient(guarded.client_options("admin", style="librdkafka"))
    user, sha_256 = f"{name}.user", there.ScramMechanism.SCRAM_SHA_256
    info = there.ScramCredentialInfo(sha_256, 5000)
    change = there.UserScramCredentialUpsertion(user, info, b"secret", b"a salt")
    assert admin.alter_user_scram_credentials([change])[user].result(30) is None
    found = admin.describe_user_scram_credentials([user])[user].result(30)
    assert found.user == user
    (shown,) = found.scram_credential_infos
    assert (shown.mechanism, shown.iterations) == (sha_256, 5000)
    assert user in admin.describe_user_scram_credentials().result(30)
    gone = there.UserScramCredentialDeletion(user, sha_256)
    assert admin.alter_user_scram_credentials([gone])[user].result(30) is None
    missing = admin.describe_user_scram_credentials([user])[user]
    assert failure_of(confluent, missing) == "RESOURCE_NOT_FOUND"
