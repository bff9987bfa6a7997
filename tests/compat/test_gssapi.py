"""GSSAPI with a realm of Kerberos of the test's own: MIT's KDC, and clients with tickets."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.compat.pair import pair_of_brokers
from tools.processes import free_port, wait_for_line

from barnabas.testing.zookeeper import ZooKeeperServer

pytest.importorskip("gssapi", reason="barnabas[kerberos] is not installed")

pytestmark = [
    pytest.mark.compat,
    pytest.mark.skipif(shutil.which("krb5kdc", path="/usr/sbin:/usr/bin") is None, reason="no KDC"),
]

SBIN = "/usr/sbin"
LOGIN = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"
KRB5 = """
[libdefaults]
 default_realm = EXAMPLE.COM
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
[realms]
 EXAMPLE.COM = {{
  kdc = 127.0.0.1:{port}
 }}
"""
KDC = """
[kdcdefaults]
 kdc_ports = {port}
 kdc_tcp_ports = {port}
[realms]
 EXAMPLE.COM = {{
  database_name = {directory}/principal
  key_stash_file = {directory}/stash
  acl_file = {directory}/acl
 }}
"""
CLIENT = """
import asyncio, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

async def run(bootstrap, topic):
    options = dict(bootstrap_servers=bootstrap, security_protocol="SASL_PLAINTEXT",
                   sasl_mechanism="GSSAPI", sasl_kerberos_service_name="kafka",
                   sasl_kerberos_domain_name="localhost")
    async with AIOKafkaProducer(**options) as producer:
        for number in range(5):
            await producer.send_and_wait(topic, b"%d" % number)
    async with AIOKafkaConsumer(topic, **options, group_id=topic,
                                auto_offset_reset="earliest") as consumer:
        async with asyncio.timeout(60):
            print(*[(await consumer.getone()).value.decode() for _ in range(5)])

asyncio.run(run(*sys.argv[1:]))
"""
OURS = """
import json, sys
import barnabas, barnabas.admin

bootstrap, topic, more = sys.argv[1:]
options = dict(bootstrap_servers=bootstrap, security_protocol="SASL_PLAINTEXT",
               sasl_mechanism="GSSAPI", **json.loads(more))
with barnabas.KafkaAdminClient(**options) as admin:
    admin.create_topics([barnabas.admin.NewTopic(topic, 1, 1)])
with barnabas.KafkaProducer(**options) as producer:
    for number in range(5):
        producer.send(topic, b"%d" % number)
    producer.flush(timeout=60)
with barnabas.KafkaConsumer(topic, **options, group_id=topic, auto_offset_reset="earliest",
                            consumer_timeout_ms=30_000) as consumer:
    print(*[next(consumer).value.decode() for _ in range(5)])
"""


@dataclass
class Realm:
    """A KDC, and a broker with a key of it."""

    directory: Path
    environment: dict[str, str]
    bootstrap: str = ""
    short: str = ""
    """The address of a listener whose sessions end after a second."""
    log: Path = Path()

    @property
    def broker_login(self) -> str:
        """Return the JAAS entry of brokers."""
        return (
            f'{LOGIN} keyTab="{self.directory}/kafka-localhost.keytab" '
            'principal="kafka/localhost@EXAMPLE.COM";'
        )

    def ours(
        self, topic: str, login: str | None = None, code: int = 0, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a client of ours."""
        given = json.dumps({} if login is None else {"sasl.jaas.config": login})
        command = (sys.executable, "-c", OURS, self.bootstrap, topic, given)
        return self.run(*command, code=code, **more)

    def run(self, *command: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command,
            env={**self.environment, **more},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done

    def tickets(self, principal: str) -> str:
        """Return a file with tickets of a principal."""
        cache = f"FILE:{self.directory}/{principal.replace('/', '-')}.cache"
        keytab = f"{self.directory}/{principal.partition('@')[0].replace('/', '-')}.keytab"
        self.run("kinit", "-k", "-t", keytab, "-c", cache, principal)
        return cache


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    directory = tmp_path_factory.mktemp("realm")
    port = free_port()
    (directory / "krb5.conf").write_text(KRB5.format(port=port))
    (directory / "kdc.conf").write_text(KDC.format(port=port, directory=directory))
    realm = Realm(
        directory,
        {
            **os.environ,
            "PATH": f"{os.environ['PATH']}:{SBIN}",
            "KRB5_CONFIG": f"{directory}/krb5.conf",
            "KRB5_KDC_PROFILE": f"{directory}/kdc.conf",
            "KRB5RCACHEDIR": str(directory),
        },
    )
    realm.run("kdb5_util", "create", "-s", "-r", "EXAMPLE.COM", "-P", "master")
    for principal in ("kafka/localhost", "alice", "bob/admin"):
        keytab = f"{directory}/{principal.replace('/', '-')}.keytab"
        realm.run("kadmin.local", "-q", f"addprinc -randkey {principal}")
        realm.run("kadmin.local", "-q", f"ktadd -k {keytab} {principal}")
    log = directory / "kdc.out"
    with log.open("wb") as output:
        kdc = subprocess.Popen(
            ["krb5kdc", "-n"], env=realm.environment, stdout=output, stderr=output
        )
    try:
        wait_for_line(kdc, log, "starting", 30)
        yield from _broker(realm)
    finally:
        kdc.terminate()
        kdc.wait(30)


def _broker(realm: Realm) -> Iterator[Realm]:
    options = {
        "log.dirs": f"{realm.directory}/data",
        "listeners": "OPEN://localhost:0,SASL://localhost:0,SHORT://localhost:0",
        # Clients ask for tickets by this name; without it they get the address that they dialled.
        "advertised.listeners": "OPEN://localhost:0,SASL://localhost:0,SHORT://localhost:0",
        "listener.security.protocol.map": (
            "OPEN:PLAINTEXT,SASL:SASL_PLAINTEXT,SHORT:SASL_PLAINTEXT"
        ),
        "inter.broker.listener.name": "OPEN",
        "listener.name.short.connections.max.reauth.ms": "1200",
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
        "listener.name.sasl.gssapi.sasl.jaas.config": realm.broker_login,
        "listener.name.short.gssapi.sasl.jaas.config": realm.broker_login,
        "sasl.kerberos.principal.to.local.rules": r"RULE:[2:$1-$2](x-.*),RULE:[1:$1]/U",
    }
    file = realm.directory / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
    command = [str(Path(sys.executable).parent / "barnabas"), "start", "--config", str(file)]
    realm.log = realm.directory / "broker.out"
    with realm.log.open("wb") as output:
        broker = subprocess.Popen(
            [*command, "--log-level", "debug"],
            env=realm.environment,
            stdout=output,
            stderr=output,
        )
    try:
        wait_for_line(broker, realm.log, "is ready on", 60)
        addresses = dict(re.findall(r"(\w+)://(localhost:\d+)", realm.log.read_text()))
        realm.bootstrap, realm.short = addresses["SASL"], addresses["SHORT"]
        yield realm
    finally:
        broker.terminate()
        broker.wait(30)


def test_aiokafka_with_a_ticket(realm: Realm) -> None:
    tickets = realm.tickets("alice@EXAMPLE.COM")
    done = realm.run(sys.executable, "-c", CLIENT, realm.bootstrap, "tickets", KRB5CCNAME=tickets)
    assert done.stdout.split() == ["0", "1", "2", "3", "4"]
    assert "'ALICE' logged in by GSSAPI" in realm.log.read_text()


def test_a_principal_without_a_rule_is_refused(realm: Realm) -> None:
    tickets = realm.tickets("bob/admin@EXAMPLE.COM")
    done = realm.run(
        sys.executable, "-c", CLIENT, realm.bootstrap, "refused", KRB5CCNAME=tickets, code=1
    )
    assert "KafkaConnectionError" in done.stderr
    assert "no rule applies to 'bob/admin@EXAMPLE.COM'" in realm.log.read_text()


def test_ours_with_a_keytab(realm: Realm) -> None:
    login = f'{LOGIN} keyTab="{realm.directory}/alice.keytab" principal="alice@EXAMPLE.COM";'
    nowhere = f"FILE:{realm.directory}/nowhere"
    done = realm.ours("keytab", login, KRB5CCNAME=nowhere)
    assert done.stdout.split() == ["0", "1", "2", "3", "4"]
    assert not (realm.directory / "nowhere").exists()


@pytest.mark.parametrize("named", [True, False])
def test_ours_with_a_ticket(realm: Realm, named: bool) -> None:
    """In the cache that the entry names, or in that of the environment."""
    tickets = realm.tickets("alice@EXAMPLE.COM")
    module = "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true"
    if named:
        login = f'{module} ticketCache="{tickets}" serviceName="kafka";'
        done = realm.ours("named", login)
    else:
        done = realm.ours("environment", KRB5CCNAME=tickets)
    assert done.stdout.split() == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("login", "why"),
    [
        (f'{LOGIN} keyTab="/absent" principal="alice@EXAMPLE.COM";', "Kerberos: "),
        ('X required serviceName="other";', "Kerberos: "),
        (f'{LOGIN} keyTab="{{}}/bob-admin.keytab" principal="bob/admin@EXAMPLE.COM";', "GSSAPI"),
    ],
)
def test_ours_are_told_why_they_are_not_let_in(realm: Realm, login: str, why: str) -> None:
    tickets = realm.tickets("alice@EXAMPLE.COM")
    done = realm.ours("refused", login.format(realm.directory), code=1, KRB5CCNAME=tickets)
    assert "AuthenticationFailedError" in done.stderr
    assert why in done.stderr.splitlines()[-1]


def test_ours_renew_their_sessions(realm: Realm) -> None:
    login = f'{LOGIN} keyTab="{realm.directory}/alice.keytab" principal="alice@EXAMPLE.COM";'
    program = (
        "import sys, time, barnabas\n"
        "with barnabas.KafkaProducer(bootstrap_servers=sys.argv[1], sasl_mechanism='GSSAPI',"
        " security_protocol='SASL_PLAINTEXT', sasl_jaas_config=sys.argv[2]) as producer:\n"
        "    end = time.monotonic() + 4\n"
        "    while time.monotonic() < end:\n"
        "        producer.send('renewed', b'x').get(30)\n"
    )
    realm.run(sys.executable, "-c", program, realm.short, login)
    assert "logged in by GSSAPI again" in realm.log.read_text()


def test_brokers_log_in_to_each_other(
    realm: Realm, zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    """Two brokers, whose only listener demands a ticket, replicate what a client writes."""
    options = {
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.in.gssapi.sasl.jaas.config": realm.broker_login,
    }
    with pair_of_brokers(tmp_path, f"{zookeeper.address}/gssapi", options, realm.environment) as (
        bootstrap,
        logs,
    ):
        login = f'{LOGIN} keyTab="{realm.directory}/alice.keytab" principal="alice@EXAMPLE.COM";'
        program = (
            "import sys, barnabas, barnabas.admin\n"
            "options = dict(bootstrap_servers=sys.argv[1], sasl_mechanism='GSSAPI',"
            " security_protocol='SASL_PLAINTEXT', sasl_jaas_config=sys.argv[2])\n"
            "with barnabas.KafkaAdminClient(**options) as admin:\n"
            "    admin.create_topics([barnabas.admin.NewTopic('both', 1, 2,"
            " topic_configs={'min.insync.replicas': '2'})])\n"
            "with barnabas.KafkaProducer(**options, acks='all') as producer:\n"
            "    print(producer.send('both', b'x').get(60).offset)\n"
        )
        done = realm.run(sys.executable, "-c", program, bootstrap, login)
    assert done.stdout.split() == ["0"]
    assert any("'kafka' logged in by GSSAPI" in log.read_text() for log in logs)
