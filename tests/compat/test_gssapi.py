"""GSSAPI with a realm of Kerberos of the test's own: MIT's KDC, and clients with tickets."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tools.processes import free_port, wait_for_line

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


@dataclass
class Realm:
    """A KDC, and a broker with a key of it."""

    directory: Path
    environment: dict[str, str]
    bootstrap: str = ""
    log: Path = Path()

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
        "listeners": "OPEN://localhost:0,SASL://localhost:0",
        "listener.security.protocol.map": "OPEN:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "inter.broker.listener.name": "OPEN",
        "offsets.topic.replication.factor": "1",
        "group.initial.rebalance.delay.ms": "0",
        "listener.name.sasl.gssapi.sasl.jaas.config": (
            f'{LOGIN} keyTab="{realm.directory}/kafka-localhost.keytab" '
            'principal="kafka/localhost@EXAMPLE.COM";'
        ),
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
        (realm.bootstrap,) = re.findall(r"SASL://(localhost:\d+)", realm.log.read_text())
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
