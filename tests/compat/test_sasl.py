"""SASL with clients that we did not write, and ours: they log in, work, renew, and are refused.

Each client produces, reads in a group and administers; each has its own error for a login that
fails.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import aiokafka.abc
import aiokafka.admin
import aiokafka.errors
import confluent_kafka
import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, NewTopic
from tests.compat.samples import DEPS, until_deadline
from tests.compat.secured import (
    MECHANISMS,
    PASSWORD,
    PASSWORDS,
    SESSION_MS,
    WRONG,
    Secured,
    is_authentication_failure,
    secured_broker,
)

import barnabas
import barnabas.admin
import barnabas.errors

with warnings.catch_warnings():
    # It reads its schemas through functions of the standard library that are on its way out.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    import kafka
    import kafka.admin
    import kafka.errors
    from kafka.net.sasl.oauth import AbstractTokenProvider

pytestmark = pytest.mark.compat

VALUES = [b"%d" % number for number in range(20)]
EACH_MECHANISM = pytest.mark.parametrize("mechanism", MECHANISMS)
KAFKAJS = DEPS / "kafkajs" / "node_modules"

Token = Callable[[], str]


@pytest.fixture(scope="module")
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    if request.config.getoption("--broker") == "apache":
        pytest.skip("tests/interop has Apache Kafka's own listeners")
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(autouse=True)
def no_secret_is_logged(secured: Secured) -> Iterator[None]:
    """Whatever a test does, its passwords and tokens are not in the broker's log."""
    yield
    log = secured.log.read_text()
    for secret in (PASSWORD, WRONG, "eyJ", "stored_key", "Traceback"):
        assert secret not in log


# confluent-kafka


def confluent(
    secured: Secured,
    mechanism: str,
    *,
    listener: str = "SASL",
    password: str = PASSWORD,
    token: Token | None = None,
    **more: Any,
) -> dict[str, Any]:
    options = {
        "bootstrap.servers": secured.addresses[listener],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "log_level": 0,
        **more,
    }
    if mechanism == "OAUTHBEARER":
        give = token or secured.token
        options["oauth_cb"] = lambda _: (give(), time.time() + 3600)
    else:
        options |= {"sasl.username": "alice", "sasl.password": password}
    return options


def confluent_work(options: dict[str, Any], topic: str) -> None:
    admin = AdminClient(options)
    admin.poll(0)  # where the token comes from
    for _ in until_deadline("the admin client works"):
        admin.poll(0.1)
        if topic in admin.list_topics(timeout=30).topics:
            break
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    producer = confluent_kafka.Producer(options)
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(60) == 0
    consumer = confluent_kafka.Consumer(
        {**options, "group.id": topic, "auto.offset.reset": "earliest"}
    )
    try:
        consumer.subscribe([topic])
        found: list[bytes | None] = []
        for left in until_deadline("all values are read"):
            found += [each.value() for each in consumer.consume(100, min(left, 0.2))]
            if len(found) == len(VALUES):
                break
        assert found == VALUES
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


@EACH_MECHANISM
def test_confluent_kafka(secured: Secured, mechanism: str, name: str) -> None:
    confluent_work(confluent(secured, mechanism), name)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_confluent_kafka_over_tls(secured: Secured, mechanism: str, name: str) -> None:
    encrypted = {"security.protocol": "SASL_SSL", "ssl.ca.location": str(secured.cafile)}
    confluent_work(confluent(secured, mechanism, listener="ENCRYPTED", **encrypted), name)


def confluent_error(options: dict[str, Any]) -> KafkaError:
    """Return the authentication error that a producer is told."""
    seen: list[KafkaError] = []
    producer = confluent_kafka.Producer({**options, "error_cb": seen.append})
    producer.produce("t", b"x")
    for _ in until_deadline("the login fails"):
        producer.poll(0.1)
        failures = [error for error in seen if is_authentication_failure(error)]
        if failures:
            producer.purge()
            producer.flush(10)
            return failures[0]
    raise AssertionError


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_confluent_kafka_with_a_wrong_password(secured: Secured, mechanism: str) -> None:
    error = confluent_error(confluent(secured, mechanism, password=WRONG))
    assert "Authentication failed" in error.str()


@pytest.mark.parametrize("lifetime_s", [-1, 3600])
def test_confluent_kafka_with_a_bad_token(secured: Secured, lifetime_s: float) -> None:
    """One that has expired, and one for another audience."""
    token = secured.token(lifetime_s=lifetime_s)
    if lifetime_s > 0:
        claims = {"sub": "alice", "iat": time.time(), "exp": time.time() + 60, "aud": "others"}
        token = secured.issuer.sign(claims)
    error = confluent_error(confluent(secured, "OAUTHBEARER", token=lambda: token))
    assert "invalid_token" in error.str()


@EACH_MECHANISM
def test_confluent_kafka_renews_its_sessions(secured: Secured, mechanism: str, name: str) -> None:
    errors: list[KafkaError] = []
    options = confluent(secured, mechanism, listener="SHORT", error_cb=errors.append)
    producer = confluent_kafka.Producer(options)
    delivered: list[KafkaError | None] = []
    started = time.monotonic()
    for _ in until_deadline("three sessions pass"):
        producer.produce(name, b"x", callback=lambda error, _: delivered.append(error))
        producer.poll(0.05)
        if time.monotonic() - started > 3.5 * SESSION_MS / 1000:
            break
    assert producer.flush(30) == 0
    assert len(delivered) > 20
    assert set(delivered) == {None}
    assert errors == []


def test_confluent_kafka_gets_in_once_its_password_is_right(secured: Secured, name: str) -> None:
    errors: list[KafkaError] = []
    options = confluent(secured, "SCRAM-SHA-256", password=WRONG, error_cb=errors.append)
    producer = confluent_kafka.Producer(options)
    producer.produce(name, b"x")
    for _ in until_deadline("the login fails"):
        producer.poll(0.1)
        if any(is_authentication_failure(error) for error in errors):
            break
    producer.set_sasl_credentials("alice", PASSWORD)
    assert producer.flush(30) == 0


# kafka-python


class KafkaPythonTokens(AbstractTokenProvider):  # type: ignore[misc]
    """Gives one token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


def kafka_python(
    secured: Secured, mechanism: str, *, password: str = PASSWORD, token: str | None = None
) -> dict[str, Any]:
    options: dict[str, Any] = {
        "bootstrap_servers": secured.addresses["SASL"],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
    }
    if mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = KafkaPythonTokens(token or secured.token())
    else:
        options |= {"sasl_plain_username": "alice", "sasl_plain_password": password}
    return options


@EACH_MECHANISM
def test_kafka_python(secured: Secured, mechanism: str, name: str) -> None:
    options = kafka_python(secured, mechanism)
    admin = kafka.KafkaAdminClient(**options)
    admin.create_topics([kafka.admin.NewTopic(name, 1, 1)])
    assert name in admin.list_topics()
    admin.close()
    producer = kafka.KafkaProducer(**options)
    for value in VALUES:
        producer.send(name, value)
    producer.flush(60)
    producer.close()
    consumer = kafka.KafkaConsumer(
        name,
        **options,
        group_id=name,
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )
    assert [next(consumer).value for _ in VALUES] == VALUES
    consumer.commit()
    consumer.close()


@EACH_MECHANISM
def test_kafka_python_with_wrong_credentials(
    secured: Secured, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    options = kafka_python(secured, mechanism, password=WRONG, token=secured.token(lifetime_s=-1))
    # It tries again until its own timeout, and logs why.
    with pytest.raises(kafka.errors.KafkaTimeoutError):
        kafka.KafkaAdminClient(**options, bootstrap_timeout_ms=1000).list_topics()
    assert "SaslAuthenticationFailedError" in caplog.text


# aiokafka


class AiokafkaTokens(aiokafka.abc.AbstractTokenProvider):
    """Gives one token."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def token(self) -> str:
        return self._token


def on_asyncio(
    secured: Secured, mechanism: str, *, password: str = PASSWORD, token: str | None = None
) -> dict[str, Any]:
    options = kafka_python(secured, mechanism, password=password)
    if mechanism == "OAUTHBEARER":
        options["sasl_oauth_token_provider"] = AiokafkaTokens(token or secured.token())
    return options


@EACH_MECHANISM
def test_aiokafka(secured: Secured, mechanism: str, name: str) -> None:
    async def run() -> list[bytes | None]:
        options = on_asyncio(secured, mechanism)
        admin = aiokafka.admin.AIOKafkaAdminClient(**options)
        await admin.start()
        await admin.create_topics([aiokafka.admin.NewTopic(name, 1, 1)])
        assert name in await admin.list_topics()
        await admin.close()
        async with aiokafka.AIOKafkaProducer(**options) as producer:
            for value in VALUES:
                await producer.send_and_wait(name, value)
        async with aiokafka.AIOKafkaConsumer(
            name, **options, group_id=name, auto_offset_reset="earliest"
        ) as consumer:
            async with asyncio.timeout(60):
                return [(await consumer.getone()).value for _ in VALUES]

    assert asyncio.run(run()) == VALUES


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_aiokafka_with_a_wrong_password(
    secured: Secured, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(**on_asyncio(secured, mechanism, password=WRONG))
        try:
            await producer.start()
        finally:
            await producer.stop()

    with pytest.raises(aiokafka.errors.KafkaError) as failure:
        asyncio.run(run())
    assert isinstance(failure.value, aiokafka.errors.KafkaConnectionError)
    assert "SaslAuthenticationFailed" in caplog.text


def test_aiokafka_with_an_expired_token(secured: Secured, name: str) -> None:
    """It takes the first answer for success, whatever that says, and then finds no broker."""

    async def run() -> None:
        options = on_asyncio(secured, "OAUTHBEARER", token=secured.token(lifetime_s=-1))
        async with aiokafka.AIOKafkaProducer(**options, request_timeout_ms=1000) as producer:
            await producer.send_and_wait(name, b"x")

    with pytest.raises(aiokafka.errors.KafkaError):
        asyncio.run(run())
    assert "token rejected: it has expired" in secured.log.read_text()


# kafkajs


def kafkajs(secured: Secured, mechanism: str, topic: str, **more: Any) -> Any:
    arguments = {
        "mechanism": mechanism.lower(),
        "username": "alice",
        "password": PASSWORD,
        "token": secured.token(),
        "topic": topic,
        "count": len(VALUES),
        **more,
    }
    program = Path(__file__).parent / "kafkajs" / "secured.js"
    done = subprocess.run(
        ["node", str(program), secured.addresses["SASL"]],
        input=json.dumps(arguments),
        env={**os.environ, "NODE_PATH": str(KAFKAJS)},
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    return json.loads(done.stdout)


needs_kafkajs = pytest.mark.skipif(
    shutil.which("node") is None or not KAFKAJS.is_dir(), reason="kafkajs is not there"
)


@needs_kafkajs
@EACH_MECHANISM
def test_kafkajs(secured: Secured, mechanism: str, name: str) -> None:
    answer = kafkajs(secured, mechanism, name)
    assert answer == {"listed": True, "values": [value.decode() for value in VALUES]}


@needs_kafkajs
@EACH_MECHANISM
def test_kafkajs_with_wrong_credentials(secured: Secured, mechanism: str, name: str) -> None:
    answer = kafkajs(secured, mechanism, name, password=WRONG, token=secured.token(lifetime_s=-1))
    expected = "KafkaJSSASLAuthenticationError"
    if mechanism == "OAUTHBEARER":  # it takes the first answer for success, whatever that says
        expected = "KafkaJSConnectionClosedError"
    assert answer["error"] == expected, answer


# kcat


def kcat(
    secured: Secured, mechanism: str, *arguments: str, password: str = PASSWORD, input: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    listener = "UNSIGNED" if mechanism == "OAUTHBEARER" else "SASL"
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "broker.address.family": "v4",
    }
    if mechanism == "OAUTHBEARER":
        settings |= {
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": "principal=alice",
        }
    else:
        settings |= {"sasl.username": "alice", "sasl.password": password}
    argv = ["kcat", "-b", secured.addresses[listener], *arguments]
    for setting, value in settings.items():
        argv += ["-X", f"{setting}={value}"]
    return subprocess.run(argv, input=input, capture_output=True, timeout=60, check=False)


needs_kcat = pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")


@needs_kcat
@EACH_MECHANISM
def test_kcat(secured: Secured, mechanism: str, name: str) -> None:
    admin = AdminClient({"bootstrap.servers": secured.addresses["OPEN"]})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    done = kcat(secured, mechanism, "-P", "-t", name, input=b"\n".join(VALUES))
    assert done.returncode == 0, done.stderr
    read = kcat(secured, mechanism, "-C", "-t", name, "-p", "0", "-e", "-q")
    assert read.stdout.split() == VALUES
    grouped = kcat(
        secured, mechanism, "-G", name, "-c", "20", "-X", "auto.offset.reset=earliest", name
    )
    assert grouped.stdout.split() == VALUES


@needs_kcat
@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_kcat_with_a_wrong_password(secured: Secured, mechanism: str) -> None:
    done = kcat(secured, mechanism, "-L", "-m", "5", password=WRONG)
    assert done.returncode == 1
    assert b"Authentication failed" in done.stderr


# ours


@EACH_MECHANISM
def test_ours(secured: Secured, mechanism: str, name: str) -> None:
    options = kafka_python(secured, mechanism)
    with barnabas.KafkaAdminClient(**options) as admin:
        admin.create_topics([barnabas.admin.NewTopic(name, 1, 1)])
    with barnabas.KafkaProducer(**options) as producer:
        for value in VALUES:
            producer.send(name, value)
        producer.flush(timeout=60)
    with barnabas.KafkaConsumer(
        name, **options, group_id=name, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    ) as consumer:
        assert [next(consumer).value for _ in VALUES] == VALUES


@EACH_MECHANISM
def test_ours_over_tls(secured: Secured, mechanism: str, name: str) -> None:
    options = kafka_python(secured, mechanism) | {
        "bootstrap_servers": secured.addresses["ENCRYPTED"],
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(secured.cafile),
    }
    with barnabas.KafkaProducer(**options) as producer:
        for value in VALUES:
            producer.send(name, value)
        producer.flush(timeout=60)
    with barnabas.KafkaConsumer(
        name, **options, group_id=name, auto_offset_reset="earliest", consumer_timeout_ms=30_000
    ) as consumer:
        assert [next(consumer).value for _ in VALUES] == VALUES


@EACH_MECHANISM
def test_ours_with_wrong_credentials(secured: Secured, mechanism: str) -> None:
    options = kafka_python(secured, mechanism, password=WRONG, token=secured.token(lifetime_s=-1))
    with (
        pytest.raises(barnabas.errors.AuthenticationFailedError),
        barnabas.KafkaAdminClient(**options) as admin,
    ):
        admin.list_topics()


@EACH_MECHANISM
def test_ours_renew_their_sessions(secured: Secured, mechanism: str, name: str) -> None:
    options = {
        **kafka_python(secured, mechanism),
        "bootstrap_servers": secured.addresses["SHORT"],
    }
    with barnabas.KafkaProducer(**options) as producer:
        started = time.monotonic()
        sent = 0
        while time.monotonic() - started < 3.5 * SESSION_MS / 1000:
            producer.send(name, b"x").get(30)
            sent += 1
    assert sent > 20


def test_all_of_a_clients_ends_of_sessions_are_kept(secured: Secured, name: str) -> None:
    """A client that does not renew its session is closed, and connects again by itself."""

    async def run() -> None:
        options = {
            **on_asyncio(secured, "PLAIN"),
            "bootstrap_servers": secured.addresses["SHORT"],
        }
        async with aiokafka.AIOKafkaProducer(**options) as producer:
            started = time.monotonic()
            while time.monotonic() - started < 2.5 * SESSION_MS / 1000:
                await producer.send_and_wait(name, b"x")

    asyncio.run(run())
    assert "its session has ended, and was not renewed" in secured.log.read_text()
