"""One command secures a cluster: what it writes is used as it stands, by clients of every kind."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.system.secured_files import SecuredCluster, kcat, program

from barnabas.security.setup.certificates import certificate_in
from barnabas.testing.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.system

DEADLINE_S = 60.0
LIBRARIES = {
    "confluent_kafka": "from confluent-kafka",
    "kafka_python": "from kafka-python",
    "aiokafka": "from aiokafka",
    "barnabas": "from barnabas",
}
SPARK = "from Spark"
HELLO = "app-hello"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    """One broker; whatever the tests did, nobody has seen a secret."""
    made = SecuredCluster(tmp_path_factory.mktemp("secured"))
    try:
        made.start()
        yield made
    finally:
        made.stop()
    secrets = made.secrets()
    assert len(secrets) > 10
    assert [each for each in secrets if each in made.said] == []
    assert "Traceback" not in made.said


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s, what
        time.sleep(0.1)


@pytest.mark.parametrize("library", LIBRARIES)
def test_programs_work_as_they_were_written(cluster: SecuredCluster, library: str) -> None:
    assert program(cluster.client(), library).strip() in LIBRARIES.values()


def test_kcat(cluster: SecuredCluster) -> None:
    if shutil.which("kcat") is None:
        pytest.skip("no kcat: apt-get install kcat")
    kcat(cluster.client(), "-P", "-t", "app-kcat", sent="from kcat\n")
    assert kcat(cluster.client(), "-C", "-e", "-q", "-t", "app-kcat") == "from kcat\n"
    refused = kcat(cluster.stranger(), "-L", "-m", "5", code=1)
    assert "Authentication failed" in refused


def test_kafkajs(cluster: SecuredCluster) -> None:
    packages = Path(__file__).parents[2] / ".deps" / "kafkajs" / "node_modules"
    if shutil.which("node") is None or not packages.is_dir():
        pytest.skip("no kafkajs: `make deps` fetches it")
    done = subprocess.run(
        ["node", "kafkajs_example.js"],
        cwd=cluster.client(),
        env=dict(os.environ, NODE_PATH=str(packages)),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.stdout.startswith("from "), done.stderr


def test_spark(cluster: SecuredCluster) -> None:
    pytest.importorskip("pyspark")
    assert SPARK in program(cluster.client(), "spark")


def test_commands(cluster: SecuredCluster) -> None:
    admin = ("--command-config", "security/admin.properties")
    app = ("--command-config", "security/clients/app/client.properties")
    cluster.command("topics", "create", "app-commands", *app)
    assert "app-commands" in cluster.command("topics", "list", *admin)
    denied = cluster.command("topics", "create", "others", *app, code=1)
    assert "AUTHORIZATION_FAILED" in denied
    cluster.command("topics", "create", "others", *admin)
    assert "others" not in cluster.command("topics", "list", *app)
    assert "User:app" in cluster.command("acls", "list", *admin)


@pytest.mark.parametrize("library", ["aiokafka", "barnabas", "kafka_python"])
def test_a_wrong_password_is_refused(cluster: SecuredCluster, library: str) -> None:
    """kafka-python tries until its timeout, and says only that it could not connect."""
    refusal = "authentication failed (SCRAM-SHA-512): unknown user or wrong password: 'app'"
    before = cluster.log().read_text().count(refusal)
    said = program(cluster.stranger(), library, code=1)
    assert "Unable to bootstrap" in said or "invalid credentials" in said
    assert cluster.log().read_text().count(refusal) > before


def test_those_who_do_not_ask_by_tls_are_refused(cluster: SecuredCluster) -> None:
    said = cluster.command(
        *("topics", "list", "--bootstrap-server", f"127.0.0.1:{cluster.port}"), code=1
    )
    assert "TLS" in said or "SSL" in said or "closed" in said, said


def test_modes_and_what_other_users_of_the_machine_see(cluster: SecuredCluster) -> None:
    for path in [cluster.path, *cluster.path.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    shown = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, text=True).stdout
    if not shown:  # ps is not everywhere
        shown = Path(f"/proc/{cluster.processes[1].pid}/cmdline").read_text()
    assert "--secure" in shown
    assert [secret for secret in cluster.secrets() if secret in shown] == []


def test_a_second_time_changes_no_byte(cluster: SecuredCluster) -> None:
    before = cluster.contents()
    said = cluster.command("security", "init", "security", "--port", str(cluster.port))
    assert cluster.contents() == before
    assert "created" not in said


def test_a_client_is_added_to_a_running_broker(cluster: SecuredCluster) -> None:
    cluster.command("security", "add-client", "late")
    log = cluster.log()
    wait_for(lambda: "initial user 'late' added" in log.read_text(), "the broker adds the user")
    assert program(cluster.client("late"), "barnabas").strip() == "from barnabas"


def test_a_renewed_certificate_is_used_without_a_restart(cluster: SecuredCluster) -> None:
    def shown() -> int:
        pem = ssl.get_server_certificate(("127.0.0.1", cluster.port), timeout=30)
        return certificate_in(pem.encode()).serial_number

    before = shown()
    assert cluster.command("security", "renew", "--all").count("renewed") >= 3
    wait_for(lambda: shown() != before, "the new certificate is served")
    assert program(cluster.client(), "barnabas").strip() in {*LIBRARIES.values(), SPARK}


def test_what_was_changed_since_survives_a_restart(tmp_path: Path) -> None:
    cluster = SecuredCluster(tmp_path)
    admin = ("--command-config", "security/admin.properties")
    try:
        cluster.start()
        cluster.command(
            *("acls", "remove", "--principal", "User:app", "--topic", "app-", "--pattern"),
            *("prefixed", "--operation", "create", *admin),
        )
        acls = cluster.command("acls", "list", *admin)
        (tmp_path / "new").write_text("changed")
        cluster.command("users", "set-password", "app", "--password-file", "new", *admin)
        cluster.stop()
        cluster.start()
        assert cluster.command("acls", "list", *admin) == acls
        program(cluster.client(), "barnabas", code=1)
        (cluster.client() / "password").write_text("changed")
        cluster.command("topics", "create", HELLO, *admin)
        assert program(cluster.client(), "barnabas") == "from barnabas\n"
        cluster.command("users", "remove", "app", *admin)
        cluster.stop()
        cluster.start()
        assert "app" not in cluster.command("users", "list", *admin)
        assert "initial user" not in cluster.log().read_text()
    finally:
        cluster.stop()


def test_certificates_of_clients_may_be_required(tmp_path: Path) -> None:
    cluster = SecuredCluster(tmp_path, "--client-auth", "required")
    try:
        cluster.start()
        for library in LIBRARIES:
            assert program(cluster.client(), library).strip() in LIBRARIES.values()
        cluster.command("topics", "list", "--command-config", "security/admin.properties")
        properties = cluster.path / "admin.properties"
        without = [line for line in properties.read_text().splitlines() if "keystore" not in line]
        (tmp_path / "without.properties").write_text("\n".join(without))
        (tmp_path / "without.properties").chmod(0o600)
        said = cluster.command("topics", "list", "--command-config", "without.properties", code=1)
        assert "certificate" in said
    finally:
        cluster.stop()


def test_three_brokers_on_zookeeper_and_a_fourth(
    tmp_path: Path, zookeeper: ZooKeeperServer, chroots: Iterator[str]
) -> None:
    cluster = SecuredCluster(
        tmp_path, "--brokers", "3", zookeeper=f"{zookeeper.address}{next(chroots)}"
    )
    admin = ("--command-config", "security/admin.properties")
    try:
        for number in (1, 2, 3):
            cluster.start(number)
        topic = ("--partitions", "3", "--replication-factor", "3")
        cluster.command("topics", "create", HELLO, *topic, *admin)
        for library in LIBRARIES:
            assert program(cluster.client(), library).strip() in LIBRARIES.values()
        in_sync = ("topics", "describe", "--under-replicated", *admin)
        wait_for(lambda: HELLO not in cluster.command(*in_sync), "all replicas follow")
        added = ["init", "security", "--brokers", "4", "--port", str(cluster.port)]
        assert "created security/brokers/4/server.properties" in cluster.command("security", *added)
        cluster.start(4)
        described = ("cluster", "describe", "--json", *admin)
        wait_for(
            lambda: len(json.loads(cluster.command(*described))["brokers"]) == 4,
            "the fourth broker has joined",
        )
        adding = sum(cluster.log(number).read_text().count("added") for number in (1, 2, 3, 4))
        assert adding == 2, "one broker adds each user"
    finally:
        cluster.stop()
