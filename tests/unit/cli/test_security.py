"""`barnabas security`: what it says, what it writes, and that it says no secret."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Run

from barnabas.cli import security
from barnabas.cli.main import main
from barnabas.cli.security import how_to_connect, options_to_start
from barnabas.config.properties import read_properties
from barnabas.model.errors import ConfigError

Security = Callable[..., Run]


@pytest.fixture
def run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Security:
    """Run a command in an empty folder, and look for what it must not print."""
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> Run:
        code = main(["security", *words])
        printed = capsys.readouterr()
        for secret in secrets(tmp_path):
            assert secret not in printed.out + printed.err
        return Run(code, printed.out, printed.err)

    return command


def secrets(folder: Path) -> list[str]:
    found = [path.read_text().strip() for path in folder.rglob("password")]
    for path in folder.rglob("cluster.properties"):
        options = read_properties(path.read_text())
        found += [options["delegation.token.secret.key"], options["password.encoder.secret"]]
        found.append(options["listener.name.sasl_ssl.plain.sasl.jaas.config"])
    return found


def test_init_says_what_it_creates_and_what_is_there(run: Security, tmp_path: Path) -> None:
    first = run("init")
    assert (first.code, first.err) == (0, "")
    *files, start, administer, programs = first.out.splitlines()
    assert {line.split()[0] for line in files} == {"created"}
    assert {line.split()[1] for line in files} == {
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()
    }
    assert start.split(maxsplit=3)[-1] == "barnabas start --secure"
    assert administer.endswith("--command-config security/admin.properties")
    assert programs.endswith(" security/clients/app")
    again = run("init")
    assert {line.split()[0] for line in again.out.splitlines()[:-3]} == {"exists"}


def test_init_of_a_cluster(run: Security) -> None:
    words = ["c", "--host", "k1,10.0.0.1", "--host", "k2", "--zookeeper", "zk:2181/kafka"]
    made = run("init", *words, "--port", "9093", "--client-auth", "required", "--client", "shop")
    assert "barnabas start --secure c --id 1" in made.out
    first = read_properties(Path("c/brokers/1/server.properties").read_text())
    assert first["advertised.listeners"] == "SASL_SSL://k1:9093"
    assert first["zookeeper.connect"] == "zk:2181/kafka"
    client = read_properties(Path("c/clients/shop/client.properties").read_text())
    assert client["bootstrap.servers"] == "k1:9093,k2:9093"
    assert "ssl.keystore.location" in client
    added = run("add-broker", "--dir", "c", "--host", "k3", "--port", "9093")
    assert added.out == ("created c/brokers/3/broker.pem\ncreated c/brokers/3/server.properties\n")
    assert run("add-broker", "--dir", "c", "--host", "k3", "--id", "3").code == 1


def test_a_client_is_added_once(run: Security) -> None:
    run("init")
    added = run("add-client", "billing", "--prefix", "invoices-")
    assert added.code == 0
    assert added.out.count("created") == 12
    assert "brokers add the user billing" in added.out
    before = Path("security/clients/billing/password").read_bytes()
    again = run("add-client", "billing")
    assert "created" not in again.out
    assert Path("security/clients/billing/password").read_bytes() == before


def test_renewing(run: Security, monkeypatch: pytest.MonkeyPatch) -> None:
    run("init")
    assert {line.split()[0] for line in run("renew").out.splitlines()} == {"valid"}
    assert {line.split()[0] for line in run("renew", "--all").out.splitlines()} == {"renewed"}
    assert {line.split()[0] for line in run("renew", "--within", "400").out.splitlines()} == {
        "renewed"
    }
    monkeypatch.setattr(security, "_now", lambda: datetime.now(UTC) + timedelta(days=3400))
    late = run("renew")
    assert late.code == 1
    assert late.out.count("renewed") == 3
    assert "ca.crt: expires on" in late.err


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (("init", "--brokers", "3"), 1, "give --zookeeper"),
        (("init", "--brokers", "0"), 2, "--brokers"),
        (("init", "--host", "a b"), 2, "is not a host name or address"),
        (("init", "--host", "a,,b"), 2, "is not a host name or address"),
        (("init", "--port", "70000"), 1, "--port 70000"),
        (("init", "--client", "admin"), 1, "'admin': the name is that of a super user"),
        (("add-client", "x"), 1, "first: barnabas security init security"),
        (("add-broker",), 1, "first: barnabas security init security"),
        (("renew",), 1, "first: barnabas security init security"),
        (("add-client", "x", "--prefix", "y", "--no-acls"), 2, "not allowed with"),
        ((), 2, "ACTION"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    run: Security, tmp_path: Path, words: tuple[str, ...], code: int, complaint: str
) -> None:
    said = run(*words)
    assert said.code == code
    assert complaint in said.err
    assert [*tmp_path.iterdir()] == []


def test_without_the_library_nothing_is_written(
    run: Security, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.x509", None)
    said = run("init")
    assert said.code == 1
    assert "pip install 'barnabas[security]'" in said.err
    assert [*tmp_path.iterdir()] == []


def test_hosts_may_be_written_as_in_a_url() -> None:
    assert security.hosts("k1, [::1] ,10.0.0.1") == ("k1", "::1", "10.0.0.1")
    with pytest.raises(argparse.ArgumentTypeError):
        security.hosts("")


def test_starting_creates_a_directory_for_one_broker(tmp_path: Path) -> None:
    path = tmp_path / "s"
    options = options_to_start(path, None, None)
    assert options["listeners"] == "SASL_SSL://127.0.0.1:9092"
    assert options["broker.id"] == "1"
    assert options_to_start(path, None, None) == options
    assert "advertised.listeners" not in options_to_start(path, "127.0.0.1:0", 1)
    assert how_to_connect(path) == [
        f"administer:         --command-config {path}/admin.properties",
        f"options, programs:  {path}/clients/app",
    ]
    other = options_to_start(tmp_path / "t", "[::1]:9095", 7)
    assert other["broker.id"] == "7"
    client = read_properties((tmp_path / "t/clients/app/client.properties").read_text())
    assert client["bootstrap.servers"] == "[::1]:9095"


def test_a_broker_on_another_machine_has_a_part_of_the_directory(run: Security) -> None:
    """Nothing is created there: it would be another cluster."""
    run("init", "--brokers", "2", "--zookeeper", "zk:2181")
    part = Path("part")
    shutil.copytree("security/brokers/2", part / "brokers/2")
    assert options_to_start(part, None, None)["broker.id"] == "2"
    assert how_to_connect(part) == []
    shutil.rmtree(part / "brokers")
    with pytest.raises(ConfigError, match="first: barnabas security init part"):
        options_to_start(part, None, None)
    assert [*part.iterdir()] == []


def test_a_broker_of_several_must_be_named(run: Security) -> None:
    run("init", "--brokers", "2", "--zookeeper", "zk:2181")
    path = Path("security")
    assert options_to_start(path, None, 2)["broker.id"] == "2"
    for wrong in (None, 3):
        with pytest.raises(ConfigError, match="must be a broker of security, which has: 1, 2"):
            options_to_start(path, None, wrong)


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "9092", "k1:http", ":9092"])
def test_clients_must_know_the_port(tmp_path: Path, listen: str) -> None:
    with pytest.raises(ConfigError, match="--listen"):
        options_to_start(tmp_path / "s", listen, None)
    assert [*tmp_path.iterdir()] == []
