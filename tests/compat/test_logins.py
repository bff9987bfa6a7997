"""Our clients' own ways to log in: delegation tokens, and tokens of an endpoint."""

from __future__ import annotations

import ssl
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Authority
from tests.compat.pair import pair_of_brokers
from tests.compat.secured import PASSWORD, SESSION_MS, Secured, secured_broker
from tests.unit.client.sasl.token_server import CLIENT, SECRET, token_server
from tests.unit.security.sasl.bearer import jwks

import barnabas
import barnabas.admin
import barnabas.errors
from barnabas.admin.tokens import DelegationToken
from barnabas.testing.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.compat

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
EACH_SCRAM = pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
VALUES = [b"%d" % number for number in range(5)]


@pytest.fixture(scope="module")
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    if request.config.getoption("--broker") == "apache":
        pytest.skip("tests/interop has Apache Kafka's own listeners")
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(autouse=True)
def no_secret_is_logged(secured: Secured, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test does, passwords and tokens are neither in the broker's log nor in ours."""
    yield
    for log in (secured.log.read_text(), caplog.text):
        for secret in (PASSWORD, SECRET, "eyJ", "token-secret", "Traceback"):
            assert secret not in log


def options(secured: Secured, mechanism: str, listener: str = "SASL", **more: Any) -> Any:
    return {
        "bootstrap_servers": secured.addresses[listener],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        **more,
    }


def alice(secured: Secured, mechanism: str) -> Any:
    return options(secured, mechanism, sasl_plain_username="alice", sasl_plain_password=PASSWORD)


def by_token(
    secured: Secured, mechanism: str, token: DelegationToken, *, hmac: bytes | None = None
) -> Any:
    """Return options of a client that has nothing but the token."""
    secret = b64encode(token.hmac if hmac is None else hmac).decode()
    login = f'{SCRAM} username="{token.token_id}" password="{secret}" tokenauth=true;'
    return options(secured, mechanism, sasl_jaas_config=login)


def work(given: Any, topic: str) -> None:
    """Administer, produce, and read in a group."""
    with barnabas.KafkaAdminClient(**given) as admin:
        admin.create_topics([barnabas.admin.NewTopic(topic, 1, 1)])
    with barnabas.KafkaProducer(**given) as producer:
        for value in VALUES:
            producer.send(topic, value)
        producer.flush(timeout=60)
    with barnabas.KafkaConsumer(
        topic, **given, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    ) as consumer:
        assert [next(consumer).value for _ in VALUES] == VALUES


def refused(given: Any) -> str:
    """Return why a client is not let in."""
    with (
        pytest.raises(barnabas.errors.AuthenticationFailedError) as failure,
        barnabas.KafkaAdminClient(**given) as admin,
    ):
        admin.list_topics()
    return str(failure.value)


@EACH_SCRAM
def test_a_delegation_token_from_its_creation_to_its_end(
    secured: Secured, mechanism: str, name: str
) -> None:
    with barnabas.KafkaAdminClient(**alice(secured, mechanism)) as admin:
        token = admin.create_delegation_token(lifetime_ms=3_600_000)
        assert token.owner == "User:alice"
        given = by_token(secured, mechanism, token)
        work(given, name)
        renewed_ms = admin.renew_delegation_token(token.hmac, period_ms=1_800_000)
        assert renewed_ms <= token.max_ms
        with barnabas.KafkaAdminClient(**given) as delegate:
            assert name in delegate.list_topics()
            with pytest.raises(barnabas.errors.KafkaError):  # a token begets no token
                delegate.create_delegation_token()
        admin.expire_delegation_token(token.hmac)
    assert "invalid credentials" in refused(given)
    assert token.hmac.hex() not in repr(token)
    assert repr(token.hmac) not in repr(token)


@EACH_SCRAM
def test_a_token_that_is_wrong_or_has_expired_lets_nobody_in(
    secured: Secured, mechanism: str
) -> None:
    with barnabas.KafkaAdminClient(**alice(secured, mechanism)) as admin:
        token = admin.create_delegation_token(lifetime_ms=3_600_000)
        short = admin.create_delegation_token(lifetime_ms=1)
    assert "invalid credentials" in refused(by_token(secured, mechanism, token, hmac=b"x" * 64))
    unannounced = by_token(secured, mechanism, token)
    unannounced["sasl_jaas_config"] = unannounced["sasl_jaas_config"].replace(" tokenauth=true", "")
    assert "invalid credentials" in refused(unannounced)
    assert time.time() * 1000 > short.expiry_ms
    assert "invalid credentials" in refused(by_token(secured, mechanism, short))


def bearer(secured: Secured, url: str, *, secret: str = SECRET, jaas: str = "", **more: Any) -> Any:
    login = f'{BEARER} clientId="{CLIENT}" clientSecret="{secret}" scope="kafka"{jaas};'
    more |= {"sasl.oauthbearer.token.endpoint.url": url, "sasl_jaas_config": login}
    more["sasl.login.callback.handler.class"] = HANDLER
    return options(secured, "OAUTHBEARER", **more)


def test_tokens_of_an_endpoint(secured: Secured, name: str) -> None:
    with token_server(secured.token) as server:
        work(bearer(secured, server.url, jaas=' extension_traceId="t1"'), name)
    # Each of the three clients has asked once, whatever number of connections it has opened.
    assert server.asked == [{"grant_type": ["client_credentials"], "scope": ["kafka"]}] * 3


def test_tokens_of_an_endpoint_over_tls(secured: Secured, name: str, tmp_path: Path) -> None:
    authority = Authority("issuers")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.issue("server").write_pem(tmp_path / "server.pem"))
    trust = f' ssl.truststore.location="{authority.write(tmp_path / "ca.pem")}"'
    with token_server(secured.token, tls) as server:
        work(bearer(secured, server.url, jaas=trust), name)


def test_an_endpoint_that_comes_back_is_waited_for(secured: Secured) -> None:
    with token_server(secured.token) as server:
        server.failures = [(503, b""), (500, b"")]
        with barnabas.KafkaAdminClient(**bearer(secured, server.url)) as admin:
            admin.list_topics()
        assert len(server.asked) == 3


def test_wrong_client_credentials(secured: Secured) -> None:
    with token_server(secured.token) as server:
        why = refused(bearer(secured, server.url, secret="hush"))
    assert "status 401 (invalid_client)" in why
    assert "hush" not in why


def test_a_token_that_the_broker_refuses(secured: Secured) -> None:
    with token_server(lambda: secured.token(lifetime_s=-1)) as server:
        assert "invalid_token" in refused(bearer(secured, server.url))


def test_short_tokens_are_renewed_under_load(secured: Secured, name: str) -> None:
    """Sessions end with their tokens, and every renewal of one brings a fresh token."""
    with token_server(lambda: secured.token(lifetime_s=SESSION_MS / 1000)) as server:
        with barnabas.KafkaProducer(
            **bearer(secured, server.url, **{"sasl.login.refresh.window.factor": 0.5})
        ) as producer:
            started = time.monotonic()
            while time.monotonic() - started < 3.5 * SESSION_MS / 1000:
                producer.send(name, b"x").get(30)
        assert 3 <= len(server.asked) <= 12


def test_unsigned_tokens(secured: Secured, name: str) -> None:
    login = f'{BEARER} unsecuredLoginStringClaim_sub="alice";'
    work(options(secured, "OAUTHBEARER", "UNSIGNED", sasl_jaas_config=login), name)
    assert "invalid_token" in refused(options(secured, "OAUTHBEARER", sasl_jaas_config=login))


def test_brokers_log_in_to_each_other_by_tokens_of_an_endpoint(
    secured: Secured, zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    (tmp_path / "jwks.json").write_bytes(jwks(secured.issuer))
    with token_server(lambda: secured.token("broker", lifetime_s=3)) as server:
        login = f'{BEARER} clientId="{CLIENT}" clientSecret="{SECRET}";'
        given = {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "jwks.json").as_uri(),
            "sasl.oauthbearer.expected.audience": "kafka",
            "sasl.oauthbearer.token.endpoint.url": server.url,
            "listener.name.in.oauthbearer.sasl.jaas.config": login,
        }
        with pair_of_brokers(tmp_path, f"{zookeeper.address}/bearer", given) as (brokers, logs):
            clients = bearer(secured, server.url) | {"bootstrap_servers": brokers}
            with barnabas.KafkaAdminClient(**clients) as admin:
                both = {"min.insync.replicas": "2"}
                admin.create_topics([barnabas.admin.NewTopic("both", 1, 2, topic_configs=both)])
            with barnabas.KafkaProducer(**clients, acks="all") as producer:
                started = time.monotonic()
                while time.monotonic() - started < 5:  # while sessions between brokers end
                    producer.send("both", b"x").get(60)
    log = "".join(log.read_text() for log in logs)
    assert "'broker' logged in by OAUTHBEARER again" in log
    for secret in (SECRET, "eyJ", "Traceback"):
        assert secret not in log
