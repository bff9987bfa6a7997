"""Secured clusters for tests: users of every kind, with options for every library."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any

import pytest

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer
from barnabas.errors import AuthenticationFailedError, TopicAuthorizationFailedError
from barnabas.model.errors import InvalidValueError
from barnabas.security.setup.client_options import ClientOptions
from barnabas.testing import Cluster
from barnabas.testing.security import certificate, in_style, protocol_named

TIMEOUT_S = 60


def send(options: dict[str, Any], topic: str, value: bytes = b"x") -> int:
    with KafkaProducer(**options) as producer:
        offset: int = producer.send(topic, value).get(TIMEOUT_S).offset
        return offset


@pytest.mark.parametrize("security", ["sasl_ssl", "sasl_plaintext", "ssl"])
@pytest.mark.parametrize(("brokers", "process"), [(1, False), (3, False), (1, True)])
def test_users_may_do_what_they_are_allowed(security: str, brokers: int, process: bool) -> None:
    with Cluster(brokers, security=security, process=process) as cluster:
        cluster.add_user("alice", 'se"cr\\et')
        cluster.allow("alice", "write", "create", "read", topic="orders", group="billing")
        alice = cluster.client_options("alice")
        assert send(alice, "orders") == 0
        with pytest.raises(TopicAuthorizationFailedError):
            send(alice, "payments")
        assert send(cluster.client_options(), "payments") == 0, "admin may do everything"
        with KafkaConsumer(
            "orders", group_id="billing", auto_offset_reset="earliest", **alice
        ) as consumer:
            assert next(consumer).value == b"x"


def test_a_user_from_before_the_start_stays_after_a_restart() -> None:
    cluster = Cluster(security="SASL_SSL", options={"auto.create.topics.enable": "true"})
    cluster.add_user("early", "one")
    cluster.add_user("early", "two")
    with cluster:
        cluster.allow("early", "all", topic="t-", prefixed=True)
        assert send(cluster.client_options("early"), "t-1") == 0
        cluster.restart(0)
        assert send(cluster.client_options("early"), "t-1") == 1
        cluster.add_user("early", "three")
        cluster.restart(0)
        assert send(cluster.client_options("early"), "t-1") == 2
        cluster.stop()
        with pytest.raises(InvalidValueError, match="no broker is running"):
            cluster.add_user("late")
        cluster.start()


def test_those_without_a_user_are_refused() -> None:
    with Cluster(security="sasl_ssl") as cluster:
        wrong = {**cluster.client_options(style="kafka-python"), "sasl_plain_password": "guess"}
        with pytest.raises(AuthenticationFailedError):
            KafkaAdminClient(**wrong).list_topics()
        with pytest.raises(InvalidValueError, match="user 'bob': must be one of admin"):
            cluster.client_options("bob")
    with Cluster(security="ssl") as cluster:
        without = cluster.client_options()
        del without["ssl.keystore.type"], without["ssl.keystore.location"]
        with pytest.raises(AuthenticationFailedError):
            KafkaAdminClient(**without).list_topics()


def test_secrets_are_in_files_of_the_owner_and_not_in_a_command() -> None:
    with Cluster(security="sasl_ssl", process=True) as cluster:
        file = cluster.data_dir / "broker-0.properties"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        password = cluster.client_options(style="librdkafka")["sasl.password"]
        runner: Any = cluster._members[0].runner
        command = Path(f"/proc/{runner._process.pid}/cmdline").read_text()
        assert "jaas" not in command
        assert "secret" not in command
        assert password not in command
        log = file.with_name("broker-0.err").read_text()
        assert password not in log


def test_the_options_work_on_a_running_loop() -> None:
    """A test may be a coroutine; the calls of a cluster block all the same."""

    async def story() -> None:
        with Cluster(security="sasl_plaintext") as cluster:
            cluster.add_user("alice")
            cluster.allow("*", "describe", cluster=True)
            assert cluster.client_options("alice")["bootstrap.servers"] == cluster.bootstrap

    asyncio.run(story())


def test_wrong_words_are_named() -> None:
    assert protocol_named("Sasl_Ssl") == "SASL_SSL"
    with pytest.raises(InvalidValueError, match="security='tls': must be one of sasl_ssl, ssl"):
        Cluster(security="tls")
    with pytest.raises(InvalidValueError, match="wired=True: must be without security"):
        Cluster(brokers=2, wired=True, security="ssl")
    with pytest.raises(InvalidValueError, match='use security="sasl_ssl"'):
        Cluster().add_user("alice")
    with Cluster(security="ssl") as cluster:
        for name in ("", "broker"):
            with pytest.raises(InvalidValueError, match="must be a name, other than broker"):
                cluster.add_user(name)
        with pytest.raises(InvalidValueError, match="style='php': must be one of kafka"):
            cluster.client_options(style="php")
        with pytest.raises(InvalidValueError, match="operation 'any': must be one of all, read"):
            cluster.allow("alice", "any", topic="t")
        with pytest.raises(InvalidValueError, match="needs an operation"):
            cluster.allow("alice", "read")


def test_styles(tmp_path: Path) -> None:
    options = ClientOptions("k:9092", "SASL_PLAINTEXT", tmp_path, "ada", "hush")
    assert in_style(options, "kafka") == options.kafka()
    assert in_style(options, "librdkafka") == options.librdkafka()
    assert in_style(options, "kafka-python") == options.kafka_python()
    assert in_style(options, "aiokafka") == options.kafka_python()
    with Cluster(security="ssl") as cluster:
        assert cluster.client_options(style="aiokafka")["ssl_context"].check_hostname
    with Cluster() as cluster:
        assert cluster.client_options() == {"bootstrap.servers": cluster.bootstrap}
        assert cluster.client_options(style="aiokafka") == {"bootstrap_servers": cluster.bootstrap}


def test_certificates_are_issued_once() -> None:
    assert certificate("ada") is certificate("ada")
    assert certificate("ada") != certificate("bob")
