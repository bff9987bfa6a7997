"""Every client over TLS: with right certificates it works, with wrong ones it says what is wrong.

One broker has two listeners: on one the broker alone shows a certificate, on the other both do.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Authority, Issued
from tests.compat.conftest import NewTopicName
from tests.compat.samples import DEPS, until_deadline
from tests.unit.broker.encrypted import CLIENT, ROOT, EncryptedServing

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer
from barnabas.admin import NewTopic
from barnabas.errors import AuthenticationFailedError

with warnings.catch_warnings():
    # kafka-python reads its messages by a function that is deprecated since Python 3.11.
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    from kafka import KafkaConsumer as OtherConsumer
    from kafka import KafkaProducer as OtherProducer

pytestmark = pytest.mark.compat

NODE_PACKAGES = DEPS / "kafkajs" / "node_modules"
NODE_CLIENT = Path(__file__).parent / "kafkajs" / "client.js"
LISTENERS = {
    "listeners": "ONE_WAY://127.0.0.1:0,MUTUAL://127.0.0.1:0",
    "listener.security.protocol.map": "ONE_WAY:SSL,MUTUAL:SSL",
    "inter.broker.listener.name": "MUTUAL",
    "listener.name.mutual.ssl.client.auth": "required",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
}
COUNT = 200


@dataclass(frozen=True)
class Way:
    """A way to the broker: an address, and the files of a client."""

    bootstrap: str
    cafile: str
    certfile: str | None = None
    keyfile: str | None = None


@dataclass(frozen=True)
class Secured:
    """The broker, and ways to it."""

    serving: EncryptedServing
    directory: Path

    def way(self, listener: str, issued: Issued | None = None, authority: Authority = ROOT) -> Way:
        """Return a way to a listener for a client that trusts the authority."""
        (port,) = (each.port for each in self.serving.broker.endpoints if each.name == listener)
        number = len(list(self.directory.iterdir()))
        cafile = authority.write(self.directory / f"{number}.ca")
        if issued is None:
            return Way(f"127.0.0.1:{port}", str(cafile))
        certificate, key = self.directory / f"{number}.crt", self.directory / f"{number}.key"
        issued.write_pair(certificate, key)
        return Way(f"127.0.0.1:{port}", str(cafile), str(certificate), str(key))


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    (directory / "clients").mkdir()
    with EncryptedServing(directory, LISTENERS) as serving:
        yield Secured(serving, directory / "clients")
        serving.lines.clear()  # each test of wrong certificates leaves some


Values = list[bytes]


class Confluent:
    """librdkafka, from Python."""

    def options(self, way: Way) -> dict[str, Any]:
        options: dict[str, Any] = {
            "bootstrap.servers": way.bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": way.cafile,
        }
        if way.certfile is not None:
            options["ssl.certificate.location"] = way.certfile
            options["ssl.key.location"] = way.keyfile
        return options

    def produce(self, way: Way, topic: str, values: Values) -> None:
        from confluent_kafka import Producer

        producer = Producer(self.options(way))
        for value in values:
            producer.produce(topic, value, partition=0)
        assert producer.flush(60) == 0

    def consume(self, way: Way, topic: str, count: int) -> Values:
        from confluent_kafka import Consumer

        consumer = Consumer(
            {**self.options(way), "group.id": f"{topic}-g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe([topic])
        values: Values = []
        for left in until_deadline(f"{count} messages of {topic}"):
            for message in consumer.consume(count - len(values), min(left, 0.2)):
                assert message.error() is None
                values.append(message.value())
            if len(values) == count:
                break
        consumer.close()
        return values

    def failure(self, way: Way) -> str:
        from confluent_kafka import KafkaError, Producer

        errors: list[KafkaError] = []
        producer = Producer({**self.options(way), "error_cb": errors.append, "log_level": 0})
        for left in until_deadline("an error"):
            producer.poll(min(left, 0.1))
            named = [e for e in errors if e.code() != KafkaError._ALL_BROKERS_DOWN]
            if named:
                break
        assert named[0].code() in (KafkaError._SSL, KafkaError._TRANSPORT)
        return named[0].str()


class Kcat:
    """librdkafka, as Debian ships it."""

    def run(self, way: Way, *arguments: str, input: bytes = b"") -> subprocess.CompletedProcess:
        if shutil.which("kcat") is None:
            pytest.skip("kcat is not installed (make deps installs it)")
        options = Confluent().options(way)
        argv = ["kcat", "-b", options.pop("bootstrap.servers")]
        for name, value in options.items():
            argv += ["-X", f"{name}={value}"]
        return subprocess.run(
            [*argv, *arguments], input=input, capture_output=True, timeout=120, check=False
        )

    def produce(self, way: Way, topic: str, values: Values) -> None:
        done = self.run(way, "-P", "-t", topic, "-p", "0", input=b"\n".join(values))
        assert done.returncode == 0, done.stderr

    def consume(self, way: Way, topic: str, count: int) -> Values:
        from_start = ["-X", "auto.offset.reset=earliest", "-c", str(count), "-q"]
        done = self.run(way, "-G", f"{topic}-g", *from_start, topic)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    def failure(self, way: Way) -> str:
        done = self.run(way, "-L", "-m", "5")
        assert done.returncode == 1
        return str(done.stderr.decode())


class KafkaPython:
    """kafka-python; it logs why it cannot connect."""

    def options(self, way: Way) -> dict[str, Any]:
        return {
            "bootstrap_servers": way.bootstrap,
            "security_protocol": "SSL",
            "ssl_cafile": way.cafile,
            "ssl_certfile": way.certfile,
            "ssl_keyfile": way.keyfile,
        }

    def produce(self, way: Way, topic: str, values: Values) -> None:
        producer = OtherProducer(**self.options(way))
        for value in values:
            producer.send(topic, value, partition=0)
        producer.flush(60)
        producer.close()

    def consume(self, way: Way, topic: str, count: int) -> Values:
        consumer = OtherConsumer(
            topic, group_id=f"{topic}-g", auto_offset_reset="earliest", **self.options(way)
        )
        values = [next(consumer).value for _ in range(count)]
        consumer.close()
        return values

    def failure(self, way: Way) -> str:
        """Try in a child process: what fails to start is left unclosed."""
        program = (
            "import json, logging, sys, kafka\n"
            "logging.basicConfig()\n"
            "kafka.KafkaProducer(**json.loads(sys.argv[1]), bootstrap_timeout_ms=2000)"
        )
        options = json.dumps(self.options(way))
        done = subprocess.run(
            [sys.executable, "-c", program, options],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert "KafkaTimeoutError: Unable to bootstrap" in done.stderr
        return done.stderr


class AioKafka:
    """aiokafka; it does not pass on why it cannot connect."""

    def options(self, way: Way) -> dict[str, Any]:
        from aiokafka.helpers import create_ssl_context

        context = create_ssl_context(cafile=way.cafile, certfile=way.certfile, keyfile=way.keyfile)
        return {
            "bootstrap_servers": way.bootstrap,
            "security_protocol": "SSL",
            "ssl_context": context,
        }

    def produce(self, way: Way, topic: str, values: Values) -> None:
        from aiokafka import AIOKafkaProducer

        async def send() -> None:
            async with AIOKafkaProducer(**self.options(way)) as producer:
                for value in values:
                    await producer.send_and_wait(topic, value, partition=0)

        asyncio.run(send())

    def consume(self, way: Way, topic: str, count: int) -> Values:
        from aiokafka import AIOKafkaConsumer

        async def read() -> Values:
            group = {"group_id": f"{topic}-g", "auto_offset_reset": "earliest"}
            async with AIOKafkaConsumer(topic, **group, **self.options(way)) as consumer:
                return [(await consumer.getone()).value for _ in range(count)]

        return asyncio.run(read())

    def failure(self, way: Way) -> str:
        from aiokafka import AIOKafkaProducer
        from aiokafka.errors import KafkaConnectionError

        async def start() -> None:
            producer = AIOKafkaProducer(**self.options(way))
            try:
                await producer.start()
            finally:
                await producer.stop()

        with pytest.raises(KafkaConnectionError, match="Unable to bootstrap") as failure:
            asyncio.run(start())
        return str(failure.value)


class KafkaJs:
    """kafkajs, in a child process."""

    def run(self, way: Way, act: str, **arguments: Any) -> subprocess.CompletedProcess:
        if shutil.which("node") is None or not NODE_PACKAGES.is_dir():
            pytest.skip("kafkajs is not there (make deps fetches it)")
        files = {"ca": way.cafile, "cert": way.certfile, "key": way.keyfile}
        named = json.dumps({name: path for name, path in files.items() if path is not None})
        return subprocess.run(
            ["node", str(NODE_CLIENT), way.bootstrap, act],
            input=json.dumps(arguments),
            env={**os.environ, "NODE_PATH": str(NODE_PACKAGES), "KAFKAJS_TLS": named},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def produce(self, way: Way, topic: str, values: Values) -> None:
        messages = [{"partition": 0, "value": value.decode()} for value in values]
        done = self.run(way, "send", topic=topic, messages=messages)
        assert done.returncode == 0, done.stderr

    def consume(self, way: Way, topic: str, count: int) -> Values:
        group = {"topic": topic, "groupId": f"{topic}-g", "members": 1, "count": count}
        done = self.run(way, "group", **group)
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)["seen"]
        return [b"value-%d" % offset for _, offset in sorted(seen)]

    def failure(self, way: Way) -> str:
        done = self.run(way, "cluster")
        assert done.returncode != 0
        assert "KafkaJS" in done.stderr
        return str(done.stderr)


class Ours:
    """Our own clients."""

    def options(self, way: Way) -> dict[str, Any]:
        return KafkaPython().options(way)

    def produce(self, way: Way, topic: str, values: Values) -> None:
        with KafkaProducer(**self.options(way)) as producer:
            for value in values:
                producer.send(topic, value, partition=0)

    def consume(self, way: Way, topic: str, count: int) -> Values:
        options = self.options(way)
        group = {"group_id": f"{topic}-g", "auto_offset_reset": "earliest"}
        with KafkaConsumer(topic, **group, **options) as consumer:
            return [next(consumer).value for _ in range(count)]

    def failure(self, way: Way) -> str:
        with pytest.raises(AuthenticationFailedError) as failure:
            KafkaProducer(**self.options(way)).send("t", b"x").get(30)
        return str(failure.value)


CLIENTS = [Confluent, Kcat, KafkaPython, AioKafka, KafkaJs, Ours]


@pytest.mark.parametrize("listener", ["ONE_WAY", "MUTUAL"])
@pytest.mark.parametrize("client", CLIENTS)
def test_records_are_produced_and_consumed_in_a_group(
    secured: Secured, client: Callable[[], Any], listener: str, new_name: NewTopicName
) -> None:
    way = secured.way(listener, CLIENT if listener == "MUTUAL" else None)
    topic = new_name()
    admin = KafkaAdminClient(**Ours().options(way))
    admin.create_topics([NewTopic(topic, 1, 1)])
    admin.close()
    values = [b"value-%d" % number for number in range(COUNT)]
    client().produce(way, topic, values)
    assert client().consume(way, topic, COUNT) == values
    secured.serving.expect_no_lines()


WRONG: dict[str, tuple[Issued | None, Authority, str, str]] = {
    "no certificate": (None, ROOT, "certificate required", "the client has no certificate"),
    "untrusted": (
        Authority("stranger").issue("mallory"),
        ROOT,
        "unknown ca",
        "unable to get local issuer certificate",
    ),
    "expired": (
        ROOT.issue("late", days=(-9, -1)),
        ROOT,
        "certificate expired",
        "certificate has expired",
    ),
    "wrong broker": (
        CLIENT,
        Authority("another"),
        "certificate|issuer",
        "the peer gave up: unknown ca",
    ),
}
SILENT = (KafkaPython, AioKafka)
"""These say that they cannot connect, not why."""
ALERTING = (Confluent, Kcat)
"""These send an alert when they reject the broker; asyncio and Node drop it, and close."""


@pytest.mark.parametrize("case", list(WRONG))
@pytest.mark.parametrize("client", CLIENTS)
def test_wrong_certificates_are_named_on_both_sides(
    secured: Secured, client: Callable[[], Any], case: str
) -> None:
    issued, authority, alert, line = WRONG[case]
    secured.serving.lines.clear()
    said = client().failure(secured.way("MUTUAL", issued, authority))
    if client not in SILENT:
        assert any(word in said.lower().replace("_", " ") for word in alert.split("|")), said
    if case == "wrong broker" and client not in ALERTING:
        return
    for _ in until_deadline("the broker's line"):
        if any(line in each for each in secured.serving.lines.of()):
            break
        time.sleep(0.01)
