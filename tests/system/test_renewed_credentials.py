"""Certificates and passwords that are exchanged under load, over SASL_SSL with client certificates.

Two pairs of a producer and a consumer are at work, ours by SCRAM and librdkafka's by PLAIN, while
the key store, the authority behind all certificates, and both passwords are replaced. No connection
is lost, each record arrives once, and what was replaced lets nobody in any longer.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from tests.certificates import Authority, Issued
from tests.system.workload import Worker
from tests.unit.broker.encrypted import CLIENT, ROOT, EncryptedServing
from tests.unit.broker.handlers.test_configs import BROKER as BROKER_RESOURCE
from tests.unit.broker.handlers.test_configs import SET, change
from tests.unit.broker.network.test_authentication import (
    FAILED,
    LOGIN,
    authenticate,
    handshake,
    log_in,
    scram,
)
from tests.unit.broker.network.test_listener_tls import context_of, look, number, serial
from tests.unit.broker.serving import Wire, create_topic, metadata, wait_for

import barnabas
from barnabas.broker.network.connection import Connection
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("renewed-credentials")]

RECORDS = 30
JAAS = "listener.name.secured.plain.sasl.jaas.config"
DEADLINE_S = 60.0


def users(password: str) -> str:
    return f'{LOGIN} user_admin="of-admin" user_alice="{password}";'


class Scene(EncryptedServing):
    """A broker whose clients need a certificate and a password."""

    def __init__(self, directory: Path) -> None:
        options = {
            "listeners": "SECURED://127.0.0.1:0",
            "listener.security.protocol.map": "SECURED:SASL_SSL",
            "inter.broker.listener.name": "SECURED",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.secured.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            JAAS: users("first"),
            "password.encoder.secret": "of the encoder",
            "connection.failed.authentication.delay.ms": "10",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.replication.factor": "1",
        }
        super().__init__(directory, options)
        self.authorities = [ROOT]

    def client_context(self, issued: Issued | None = None, **more: object) -> ssl.SSLContext:
        """Return a context that trusts all authorities that there are."""
        context = super().client_context(issued or CLIENT, **more)
        for each in self.authorities:
            context.load_verify_locations(cadata=each.pem)
        return context

    def enter(self, issued: Issued | None = None) -> Wire:
        """Shake hands with a certificate; the broker's verdict comes with the first answer."""
        return self.connect_encrypted(issued or CLIENT)

    def is_let_in(self, password: str, *, by_scram: bool, issued: Issued | None = None) -> bool:
        """Return whether a new connection logs in; the one line of a rejection is expected."""
        with self.enter(issued) as wire:
            if by_scram:
                answer = scram(wire, "carol", password)
            else:
                handshake(wire)
                answer = authenticate(wire, f"\0alice\0{password}".encode())
            if answer.error_code == 0:
                return bool(metadata(wire).brokers)
        assert answer.error_code == FAILED
        self.expect_line("unknown user or wrong password")
        return False

    def connections(self) -> list[Connection]:
        (listener,) = self.broker.parts.network._listeners
        return self.inside(lambda: list(listener.connections))

    def renew(self, *, files: dict[Path, str | Issued]) -> None:
        """Replace files, as the broker notices by itself, and wait until they are in use."""
        before = context_of(self)
        for path, content in files.items():
            if isinstance(content, Issued):
                content.write_pem(path)
            else:
                path.write_text(content)
        look(self)
        self.wait_inside(lambda: context_of(self) is not before, "the files are in use")

    def shows(self, issued: Issued) -> bool:
        """Return whether new connections see a certificate."""
        with self.enter() as wire:
            return serial(wire) == number(issued)


class Pair(Worker):
    """A producer and a consumer of a topic of their own; numbers are the records."""

    def __init__(self, topic: str) -> None:
        super().__init__()
        self.topic = topic
        self.sent = 0
        self.received: list[int] = []

    def more(self) -> None:
        """Wait until more records were sent and received."""
        goal = len(self.received) + RECORDS
        wait_for(lambda: len(self.received) >= goal or self.failure, f"{self.topic}: more records")
        assert self.failure is None

    def complete(self) -> None:
        """Hold that each record has arrived, once, in order."""
        assert self.received == list(range(self.sent))


class OurPair(Pair):
    """Our clients, by SCRAM."""

    def __init__(self, topic: str, options: dict[str, str]) -> None:
        super().__init__(topic)
        self._options = {**options, "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "carol"}

    def run(self) -> None:
        with (
            barnabas.KafkaProducer(**self._options, enable_idempotence=True) as producer,
            barnabas.KafkaConsumer(
                self.topic, group_id=self.topic, auto_offset_reset="earliest", **self._options
            ) as consumer,
        ):
            while not self.ending.is_set() or len(self.received) < self.sent:
                if not self.ending.is_set():
                    producer.send(self.topic, b"%d" % self.sent).get(DEADLINE_S)
                    self.sent += 1
                for records in consumer.poll(timeout_ms=5).values():
                    self.received += [int(record.value) for record in records]


class ForeignPair(Pair):
    """Clients of librdkafka, by PLAIN."""

    def __init__(self, topic: str, options: dict[str, str]) -> None:
        super().__init__(topic)
        self.errors: list[Any] = []
        self._options: dict[str, Any] = {
            **options,
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "error_cb": self.errors.append,
        }

    def run(self) -> None:
        producer = Producer({**self._options, "enable.idempotence": True, "linger.ms": 1})
        group = {"group.id": self.topic, "auto.offset.reset": "earliest"}
        consumer = Consumer({**self._options, **group})
        consumer.subscribe([self.topic])
        try:
            while not self.ending.is_set() or len(self.received) < self.sent:
                if not self.ending.is_set():
                    producer.produce(self.topic, b"%d" % self.sent)
                    self.sent += 1
                producer.poll(0)
                message = consumer.poll(0.01)
                if message is not None:
                    assert message.error() is None, message.error()
                    value = message.value()
                    assert isinstance(value, bytes)
                    self.received.append(int(value))
            assert producer.flush(DEADLINE_S) == 0
            assert self.errors == []
        finally:
            consumer.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with Scene(tmp_path) as running:
        yield running


@contextmanager
def loaded(scene: Scene, tmp_path: Path) -> Iterator[list[Pair]]:
    """Run both pairs; afterwards hold that nothing was lost, neither records nor connections."""
    with scene.enter() as admin:
        log_in(admin, "admin", "of-admin")
        set_password(admin, "carol", "first")
        for topic in ("ours", "foreign"):
            create_topic(admin, topic)
    trusted, own = tmp_path / "of-clients.pem", CLIENT.write_pem(tmp_path / "own.pem")
    trusted.write_text("".join(each.pem for each in scene.authorities))
    options = {
        "bootstrap.servers": f"127.0.0.1:{scene.address[1]}",
        "security.protocol": "SASL_SSL",
        "sasl.password": "first",
        "ssl.ca.location": str(trusted),
        "ssl.certificate.location": str(own),
        "ssl.key.location": str(own),
    }
    with OurPair("ours", options) as ours, ForeignPair("foreign", options) as foreign:
        pairs: list[Pair] = [ours, foreign]
        for pair in pairs:
            pair.more()
        scene.wait_inside(lambda: True, "the broker answers")
        living = scene.connections()
        assert len(living) >= 4, "a producer and a consumer each"
        yield pairs
        for pair in pairs:
            pair.more()
        lost = scene.inside(lambda: [each for each in living if not each.is_open])
        assert lost == []
    for pair in pairs:
        pair.complete()


def set_password(admin: Wire, user: str, password: str) -> None:
    """Set a password, with a salt as long as clients demand it."""
    salt = b"sixteen bytes of"
    changed = ScramCredentialUpsertion(
        name=user,
        mechanism=1,
        iterations=4096,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac("sha256", password.encode(), salt, 4096),
    )
    (result,) = admin.ask(AlterUserScramCredentialsRequest(upsertions=[changed])).results
    assert result.error_code == 0, result


def alter(admin: Wire, name: str, value: str) -> None:
    result = change(admin, BROKER_RESOURCE, "0", (name, SET, value))
    assert result.error_code == 0, result.error_message


def test_everything_is_exchanged_under_load(scene: Scene, tmp_path: Path) -> None:
    renewed_root = Authority("renewed root")
    scene.authorities.append(renewed_root)  # clients get to know it first
    with scene.enter() as admin, loaded(scene, tmp_path) as pairs:
        log_in(admin, "admin", "of-admin")

        def go_on() -> None:
            for pair in pairs:
                pair.more()

        # The key store: its file, its file by option, another file by option.
        first, second, third = (ROOT.issue("broker") for _ in range(3))
        scene.renew(files={scene.key_store: first})
        assert scene.shows(first)
        go_on()
        second.write_pem(scene.key_store)
        location = "listener.name.secured.ssl.keystore.location"
        alter(admin, location, str(scene.key_store))
        wait_for(lambda: scene.shows(second), "the same path is read again")
        go_on()
        moved = third.write_pem(tmp_path / "moved.pem")
        alter(admin, location, str(moved))
        wait_for(lambda: scene.shows(third), "another path is read")
        go_on()

        # The authority: both are trusted, then the broker changes, then only the new one is.
        guest = renewed_root.issue("guest")
        with scene.enter(guest) as wire, pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
            handshake(wire)
        scene.expect_line("the peer's certificate is rejected")
        scene.renew(files={scene.trust_store: ROOT.pem + renewed_root.pem})
        for issued in (CLIENT, guest):
            assert scene.is_let_in("first", by_scram=False, issued=issued)
        fourth = renewed_root.issue("broker")
        scene.renew(files={moved: fourth})
        assert scene.shows(fourth)
        go_on()
        scene.renew(files={scene.trust_store: renewed_root.pem})
        with scene.enter(CLIENT) as wire, pytest.raises(ssl.SSLError, match="UNKNOWN_CA"):
            handshake(wire)
        scene.expect_line("the peer's certificate is rejected")
        assert scene.is_let_in("first", by_scram=False, issued=guest)
        go_on()

        # The passwords.
        set_password(admin, "carol", "second")
        wait_for(lambda: scene.is_let_in("second", by_scram=True, issued=guest), "the new password")
        assert not scene.is_let_in("first", by_scram=True, issued=guest)
        go_on()
        alter(admin, JAAS, users("second"))
        wait_for(
            lambda: scene.is_let_in("second", by_scram=False, issued=guest), "the new password"
        )
        assert not scene.is_let_in("first", by_scram=False, issued=guest)
        go_on()


def test_files_that_are_half_exchanged_hold_up_nobody(scene: Scene, tmp_path: Path) -> None:
    """A key store of an authority that is not trusted yet is not used, until it is."""
    renewed_root = Authority("renewed root")
    scene.authorities.append(renewed_root)
    renewed = renewed_root.issue("broker")
    before = serial_now(scene)
    with loaded(scene, tmp_path) as pairs:
        renewed.write_pem(scene.key_store)
        look(scene)
        scene.expect_line("brokers could not connect to each other")
        assert serial_now(scene) == before
        for pair in pairs:
            pair.more()
        scene.renew(files={scene.trust_store: ROOT.pem + renewed_root.pem})
        assert scene.shows(renewed)


def serial_now(scene: Scene) -> int:
    with scene.enter() as wire:
        return serial(wire)
