"""`barnabas start`: what the broker's options are, from the file, the flags and the defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.cli.main import COMMANDS, parser
from barnabas.cli.start import option_values
from barnabas.config.broker import BrokerOptions
from barnabas.config.sources import BrokerSources, Source, Synonym
from barnabas.model.errors import ConfigError

START = next(command for command in COMMANDS if command.name == "start")


@pytest.fixture
def options(tmp_path: Path) -> Any:
    """Read a file, if there is one, and flags."""

    def read(*flags: str, file: str | None = None) -> BrokerOptions:
        if file is not None:
            path = tmp_path / "server.properties"
            path.write_text(file)
            flags = ("--config", str(path), *flags)
        return BrokerOptions.parse(option_values(parser(START).parse_args(flags)))

    return read


def test_defaults(options: Any) -> None:
    """Nothing is open to the network unless somebody says so."""
    given = options()
    assert given.log_directories == ("data",)
    assert [str(each) for each in given.endpoints.bind] == ["PLAINTEXT://127.0.0.1:9092"]
    assert given.warnings() == []


@pytest.mark.parametrize(
    ("file", "flags", "expected"),
    [
        ("log.dirs=/a,/b", (), ("/a", "/b")),
        ("log.dir=/a", (), ("/a",)),
        ("log.dir=/a\nlog.dirs=/b", (), ("/b",)),
        ("log.dirs=/a", ("--data-dir", "/c"), ("/c",)),
        ("log.dir=/a", ("--data-dir", "/c"), ("/c",)),
        ("", ("--set", "log.dir=/d"), ("/d",)),
        ("log.dir=/a", ("--set", "log.dirs=/d"), ("/d",)),
    ],
)
def test_where_the_data_is(
    options: Any, file: str, flags: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """The default gives way to both of the names under which Kafka knows the directory."""
    assert options(*flags, file=file).log_directories == expected


def test_flags_win_over_the_file(options: Any) -> None:
    """And --set over the flags."""
    file = "broker.id=1\nlisteners=PLAINTEXT://:1\nnum.partitions=2\nzookeeper.connect=zk:1\n"
    flags = ("--id", "7", "--listen", "[::1]:0", "--zookeeper", "zk:2/kafka")
    given = options(*flags, "--set", "num.partitions=3", "--set", "broker.id=8", file=file)
    assert (given.broker_id, given.num_partitions, given.zookeeper_connect) == (8, 3, "zk:2/kafka")
    assert [str(each) for each in given.endpoints.bind] == ["PLAINTEXT://[::1]:0"]


@pytest.mark.parametrize(
    ("file", "flags"),
    [
        ("advertised.listeners=PLAINTEXT://h:1", ()),
        (None, ("--set", "advertised.listeners=PLAINTEXT://h:1")),
        ("advertised.listeners=PLAINTEXT://x:9", ("--set", "advertised.listeners=PLAINTEXT://h:1")),
    ],
)
def test_what_is_advertised_comes_from_the_file_or_the_flags(
    options: Any, file: str | None, flags: tuple[str, ...]
) -> None:
    """DescribeConfigs calls both STATIC_BROKER_CONFIG, also beside a value set at run time."""
    sources = BrokerSources(options(*flags, file=file).given)
    name = "advertised.listeners"
    given = Synonym(name, "PLAINTEXT://h:1", Source.STATIC_BROKER)
    (found,) = sources.describe([name])
    assert (found.value, found.source, found.synonyms) == (given.value, given.source, (given,))
    dynamic = Synonym(name, "PLAINTEXT://d:2", Source.DYNAMIC_BROKER)
    (found,) = sources.with_broker({name: "PLAINTEXT://d:2"}).describe([name])
    assert (found.value, found.source) == (dynamic.value, dynamic.source)
    assert found.synonyms == (dynamic, given)


def test_files_that_cannot_be_read(options: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--config .*nowhere: cannot read: .*No such file"):
        options("--config", str(tmp_path / "nowhere"))
    (tmp_path / "latin").write_bytes(b"broker.rack=caf\xe9\n")
    with pytest.raises(ConfigError, match=r"--config .*latin: cannot read"):
        options("--config", str(tmp_path / "latin"))


def test_a_secured_broker(options: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = options("--secure", "--data-dir", "d")
    assert [str(each) for each in given.endpoints.bind] == ["SASL_SSL://127.0.0.1:9092"]
    assert given.log_directories == ("d",)
    assert given.warnings() == []
    assert (tmp_path / "security" / "admin.properties").exists()
    moved = options("--secure", "security", "--listen", "127.0.0.1:0", "--set", "num.partitions=3")
    assert [str(each) for each in moved.endpoints.bind] == ["SASL_SSL://127.0.0.1:0"]
    assert moved.num_partitions == 3
    assert moved.log_directories == ("data",)


def test_a_file_and_a_directory_are_one_too_many(options: Any) -> None:
    """A listener in the file would be open to everyone, whatever the directory says."""
    with pytest.raises(SystemExit):
        options("--secure", file="listeners=PLAINTEXT://:9092")


@pytest.mark.parametrize(
    ("flags", "address"),
    [
        ((), None),
        (("--metrics",), ("127.0.0.1", 9404)),
        (("--metrics", "0.0.0.0:9405"), ("0.0.0.0", 9405)),
        (("--metrics", "--id", "1"), ("127.0.0.1", 9404)),
        (("--metrics", ":1", "--set", "barnabas.metrics.listener=:2"), ("127.0.0.1", 2)),
    ],
)
def test_metrics_are_served_when_asked_for(
    options: Any, flags: tuple[str, ...], address: tuple[str, int] | None
) -> None:
    assert options(*flags).metrics_address == address


def test_a_wrong_address_of_metrics_is_named(options: Any) -> None:
    with pytest.raises(ConfigError, match="listener=9404: must be host:port"):
        options("--metrics", "9404")


@pytest.mark.parametrize(
    ("flags", "listener"),
    [
        ((), None),
        (("--console",), "127.0.0.1:8080"),
        (("--console", "127.0.0.1:9000"), "127.0.0.1:9000"),
        (("--console", "--set", "barnabas.console.listener=:1"), ":1"),
    ],
)
def test_a_console_is_off_unless_asked_for(
    options: Any, flags: tuple[str, ...], listener: str | None
) -> None:
    assert options(*flags).barnabas_console_listener == listener
