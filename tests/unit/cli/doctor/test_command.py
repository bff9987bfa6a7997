"""`barnabas doctor` against real brokers, each time with another fault."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.certificates import Authority
from tests.unit.cli.conftest import Barnabas, Run
from tests.unit.cli.secured import Secured, jaas

from barnabas.config.properties import write_properties
from barnabas.testing import Cluster


def found(run: Run, check: str) -> list[tuple[str, str]]:
    """Return how bad a check's findings are, and their lines."""
    lines = [line for line in run.out.splitlines()[:-1] if line[7:].startswith(check)]
    return [(line.split()[0], line) for line in lines]


def only(run: Run, check: str) -> tuple[str, str]:
    [one] = found(run, check)
    return one


def reds(run: Run) -> list[str]:
    return [line for line in run.out.splitlines() if line.startswith("red ")]


def assert_stopped_at(run: Run, check: str, *words: str) -> None:
    """Assert that one check is red, that it is the last one, and what it says."""
    assert run.code == 1, run
    assert run.err == ""
    [line] = reds(run)
    assert line == run.out.splitlines()[-2], "nothing can be checked after it"
    assert line[7:].startswith(check), line
    for word in words:
        assert word in line, line
    assert "; next: " in line


def test_a_sound_broker_has_no_red(barnabas: Barnabas) -> None:
    run = barnabas("doctor")
    assert (run.code, run.err, reds(run)) == (0, "", [])
    for check in ("resolve", "connect", "versions", "metadata", "advertised", "record", "clock"):
        assert only(run, check)[0] == "green"
    assert barnabas("topics", "list").out.count("barnabas-doctor-") == 0, "its topic is deleted"
    assert run.out.splitlines()[-1].endswith(" 0 red")
    assert "\x1b" not in run.out


def test_machines_get_the_same(barnabas: Barnabas) -> None:
    run = barnabas("doctor", "--json", "--read-only")
    document = json.loads(run.out)
    assert document["red"] == 0
    checks = [finding["check"] for finding in document["findings"]]
    assert "advertised" in checks
    assert "record" not in checks
    assert len(checks) == document["green"] + document["amber"]


def test_a_given_topic_is_used(barnabas: Barnabas, topic: str) -> None:
    run = barnabas("doctor", "--topic", topic)
    assert only(run, "record")[0] == "green"
    assert found(run, "clock") == [], "the topic has the producers' times"


def test_a_topic_that_does_not_exist_is_amber(barnabas: Barnabas) -> None:
    run = barnabas("doctor", "--topic", "no.such.topic")
    severity, line = only(run, "record")
    assert (run.code, severity) == (0, "amber")
    assert "not checked: topic no.such.topic" in line
    assert barnabas("doctor", "--topic", "no.such.topic", "--strict").code == 1


def test_a_wrong_port(command: Barnabas) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        run = command("doctor", "--bootstrap-server", f"127.0.0.1:{closed.getsockname()[1]}")
    assert_stopped_at(run, "connect", "connection refused", "barnabas start")


def test_a_wrong_name(command: Barnabas) -> None:
    assert_stopped_at(command("doctor", "--bootstrap-server", "no-such.invalid:1"), "resolve")


@contextmanager
def _hanging_up() -> Iterator[int]:
    """Listen on a port, and close each connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    accepted, _ = server.accept()
                except OSError:
                    return
                accepted.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_something_else_listens_there(command: Barnabas) -> None:
    with _hanging_up() as port:
        run = command("doctor", "--bootstrap-server", f"127.0.0.1:{port}")
    assert_stopped_at(run, "versions", f"127.0.0.1:{port}")


def test_tls_is_not_expected(secured: Secured, command: Barnabas) -> None:
    run = command("doctor", "--bootstrap-server", secured.addresses["TLS"])
    assert_stopped_at(run, "versions", "set security.protocol=SSL or SASL_SSL")


def options_of(secured: Secured, listener: str, **changes: str) -> str:
    """Write options of the administrator with changes, and return the file."""
    changed = {name.replace("_", "."): value for name, value in changes.items()}
    return secured.file(secured.options(listener=listener) | changed)


def test_tls_is_not_spoken(secured: Secured, command: Barnabas) -> None:
    file = options_of(secured, "TLS", bootstrap_servers=secured.addresses["OPEN"])
    run = command("doctor", "--command-config", file)
    assert_stopped_at(run, "tls", "set security.protocol=PLAINTEXT or SASL_PLAINTEXT in ")


def test_a_certificate_for_another_name(secured: Secured, command: Barnabas) -> None:
    file = options_of(secured, "STRANGE")
    run = command("doctor", "--command-config", file)
    assert_stopped_at(run, "tls", "certificate is rejected", "a name in the certificate")


def test_a_certificate_of_a_stranger(secured: Secured, command: Barnabas, tmp_path: Path) -> None:
    other = Authority("other").write(tmp_path / "other.pem")
    file = options_of(secured, "TLS", ssl_truststore_location=str(other))
    run = command("doctor", "--command-config", file)
    assert_stopped_at(run, "tls", "certificate is rejected", "ssl.truststore.location")


def test_a_wrong_password(secured: Secured, command: Barnabas) -> None:
    file = options_of(secured, "BOTH", sasl_jaas_config=jaas("admin", "wrong"))
    run = command("doctor", "--command-config", file)
    assert_stopped_at(run, "sasl", "rejected the credentials", "sasl.jaas.config")


def test_a_login_is_expected(secured: Secured, command: Barnabas) -> None:
    run = command("doctor", "--bootstrap-server", secured.addresses["SASL"])
    assert_stopped_at(run, "metadata", "security.protocol=SASL_PLAINTEXT", "SCRAM-SHA-512")


def test_a_secured_broker_is_sound_for_its_administrator(as_admin: Barnabas) -> None:
    run = as_admin("doctor")
    assert (run.code, reds(run)) == (0, [])
    assert [only(run, check)[0] for check in ("tls", "sasl", "record")] == ["green"] * 3


def test_what_a_user_may_not_do_is_amber(secured: Secured, command: Barnabas) -> None:
    file = secured.file(secured.options("alice"))
    run = command("doctor", "--command-config", file)
    assert (run.code, run.err) == (0, "")
    for check, step in (
        ("record", "--topic TOPIC"),
        ("disk space", "allow DESCRIBE on the cluster"),
        ("options", "allow DESCRIBE_CONFIGS on the cluster"),
    ):
        severity, line = only(run, check)
        assert severity == "amber"
        assert "not checked: " in line
        assert step in line


def test_an_advertised_address_that_leads_nowhere(command: Barnabas) -> None:
    options = {"advertised.listeners": "PLAINTEXT://broker.invalid:0"}
    with Cluster(options=options) as cluster:
        port = cluster.bootstrap.rpartition(":")[2]
        run = command("doctor", "--bootstrap-server", f"127.0.0.1:{port}")
    assert_stopped_at(
        run, "advertised", f"broker.invalid:{port}", "set advertised.listeners of broker 0"
    )


def _isr(trio: Barnabas, topic: str) -> list[int]:
    [document] = json.loads(trio("topics", "describe", topic, "--json").out)
    isr: list[int] = document["partitions"][0]["isr"]
    return isr


def _await(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end_s, "it does not come"


def test_partitions_under_min_isr_and_without_a_leader(
    trio: Barnabas, three_brokers: Cluster
) -> None:
    strict = ("--replication-factor", "3", "--config", "min.insync.replicas=3")
    assert trio("topics", "create", "doctor-strict", *strict).code == 0
    assert trio("topics", "create", "doctor-single", "--partitions", "3").code == 0
    assert only(trio("doctor", "--read-only"), "min ISR")[0] == "amber", "none may stop"
    three_brokers.kill(1)
    try:
        _await(lambda: 1 not in _isr(trio, "doctor-strict"))
        run = trio("doctor", "--read-only", "--bootstrap-server", _alive(three_brokers))
    finally:
        three_brokers.start(1)
    assert run.code == 1
    for check, topic in (("min ISR", "doctor-strict-0"), ("leaders", "doctor-single-")):
        severity, line = only(run, check)
        assert severity == "red"
        assert topic in line
        assert f"ask: barnabas why partition {topic}" in line
    _await(lambda: len(_isr(trio, "doctor-strict")) == 3)
    for name in ("doctor-strict", "doctor-single"):
        assert trio("topics", "delete", name).code == 0


def _alive(cluster: Cluster) -> str:
    """Return the address of a broker that still runs."""
    return cluster.bootstrap.split(",")[0]


# -- the machine


def properties(directory: Path, options: dict[str, Any]) -> str:
    path = directory / "server.properties"
    path.write_text(write_properties({name: str(value) for name, value in options.items()}))
    return str(path)


def test_a_sound_machine(command: Barnabas, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    file = properties(tmp_path, {"log.dirs": data, "broker.id": 3})
    run = command("doctor", "--server-properties", file)
    assert (run.code, run.err) == (0, "")
    for check in ("disk space", "disk speed", "last stop", "owner", "descriptors"):
        assert found(run, check), check
    assert list(data.iterdir()) == [], "nothing stays"


def test_options_that_do_not_start(command: Barnabas, tmp_path: Path) -> None:
    file = properties(tmp_path, {"log.dirs": tmp_path, "num.partitions": "many"})
    run = command("doctor", "--server-properties", file)
    assert run.code == 1
    assert "num.partitions=many: must be a whole number" in reds(run)[0]


def test_options_that_do_nothing(command: Barnabas, tmp_path: Path) -> None:
    file = properties(
        tmp_path, {"log.dirs": tmp_path, "num.partition": 3, "num.network.threads": 9}
    )
    run = command("doctor", "--server-properties", file)
    lines = "\n".join(line for severity, line in found(run, "options") if severity == "amber")
    assert run.code == 0
    assert "num.partition: no such option" in lines
    assert "num.network.threads is set, but has no effect" in lines


def test_a_directory_that_cannot_be_written(command: Barnabas) -> None:
    run = command("doctor", "--data-dir", "/proc/self")
    assert run.code == 1
    assert only(run, "directory")[0] == "red"


def test_a_file_is_no_directory(command: Barnabas, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    assert "is not a directory" in only(command("doctor", "--data-dir", str(path)), "directory")[1]


def test_a_directory_of_another_broker(command: Barnabas, tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=4\ncluster.id=abc\n")
    file = properties(tmp_path, {"log.dirs": tmp_path, "broker.id": 3})
    run = command("doctor", "--server-properties", file)
    assert only(run, "owner")[0] == "red"
    assert "belongs to broker 4" in only(run, "owner")[1]


def test_logs_that_were_not_closed(command: Barnabas, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    severity, line = only(command("doctor", "--data-dir", str(tmp_path)), "last stop")
    assert severity == "amber"
    assert "1 log" in line
    (tmp_path / ".kafka_cleanshutdown").touch()
    assert only(command("doctor", "--data-dir", str(tmp_path)), "last stop")[0] == "green"


def test_a_file_that_cannot_be_read(command: Barnabas, tmp_path: Path) -> None:
    run = command("doctor", "--server-properties", str(tmp_path / "none"))
    assert (run.code, run.out) == (1, "")
    assert run.err.startswith("barnabas doctor: --server-properties ")


def test_a_zookeeper_that_is_gone(command: Barnabas, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}/chroot"
        file = properties(tmp_path, {"log.dirs": tmp_path, "zookeeper.connect": address})
        run = command("doctor", "--server-properties", file)
    assert run.code == 1
    assert "connection refused" in only(run, "zookeeper")[1]
