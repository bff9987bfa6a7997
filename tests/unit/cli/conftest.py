"""Commands against a real broker: run one, get its exit code and what it printed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.unit.cli.secured import Secured, secured_broker

from barnabas.cli.main import main
from barnabas.testing import Cluster

_numbers = itertools.count()


class Run(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str


Barnabas = Callable[..., Run]
Produce = Callable[..., Run]


@pytest.fixture
def barnabas(
    barnabas_bootstrap: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Barnabas:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", barnabas_bootstrap)

    def run(*words: str) -> Run:
        code = main(words)
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return run


@pytest.fixture
def topic(barnabas: Barnabas) -> str:
    """A topic of three partitions that no other test uses."""
    name = f"topic-{next(_numbers)}"
    assert barnabas("topics", "create", name, "--partitions", "3").code == 0
    return name


@pytest.fixture
def produce(barnabas: Barnabas, tmp_path: Path) -> Produce:
    """Send text to a topic as a file."""

    def run(topic: str, text: str, *words: str) -> Run:
        path = tmp_path / "lines"
        path.write_text(text)
        return barnabas("produce", topic, "--file", str(path), *words)

    return run


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A broker with every security protocol, and with ACLs."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as broker:
        yield broker


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Barnabas:
    """Run commands that say themselves which cluster they are for."""
    for name in ("BARNABAS_BOOTSTRAP", "BARNABAS_COMMAND_CONFIG"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str) -> Run:
        code = main(words)
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return run


@pytest.fixture
def as_admin(secured: Secured, command: Barnabas) -> Barnabas:
    """Run commands as the administrator of the secured broker."""
    file = secured.file(secured.options())
    return lambda *words: command(*words, "--command-config", file)


@pytest.fixture(scope="session")
def three_brokers() -> Iterator[Cluster]:
    """Three brokers in three racks; whoever stops one starts it again."""
    # Leaders come home when a test says so, however long the tests take.
    options = {"replica.fetch.wait.max.ms": 50, "auto.leader.rebalance.enable": "false"}
    with Cluster(brokers=3, options=options, racks=("red", "green", "blue")) as cluster:
        yield cluster


@pytest.fixture
def trio(
    three_brokers: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Barnabas:
    """Run commands against three brokers."""
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", three_brokers.bootstrap)

    def run(*words: str) -> Run:
        code = main(words)
        captured = capsys.readouterr()
        return Run(code, captured.out, captured.err)

    return run
