"""A properties file for all clients of a command: what it may have, and who may read it."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Barnabas

from barnabas.cli.arguments import add_connection
from barnabas.cli.command_config import BOOTSTRAP, CommandConfig, bootstrap_of, client_options
from barnabas.model.errors import ConfigError

LOGIN = 'x.PlainLoginModule required username="ada" password="pw";'


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BARNABAS_BOOTSTRAP", raising=False)
    monkeypatch.delenv("BARNABAS_COMMAND_CONFIG", raising=False)


def written(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_connection(parser)
    return parser.parse_args(words)


def test_every_client_gets_the_options_by_their_own_names(tmp_path: Path) -> None:
    path = written(
        tmp_path / "client.properties",
        "bootstrap.servers=a:1,b:2\nsecurity.protocol=SASL_SSL\nssl.truststore.location=ca.pem\n"
        f"sasl.mechanism=PLAIN\nsasl.jaas.config={LOGIN}\nclient.id=mine\n"
        "ssl.endpoint.identification.algorithm=\n",
    )
    assert client_options(parsed("--command-config", path)) == {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SASL_SSL",
        "ssl.cafile": "ca.pem",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": LOGIN,
        "client.id": "mine",
        "ssl.endpoint.identification.algorithm": "",
    }


def test_without_a_file_there_are_only_brokers() -> None:
    assert client_options(parsed()) == {"bootstrap.servers": BOOTSTRAP, "client.id": "barnabas-cli"}


def test_brokers_come_from_the_command_line_the_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "client.properties", "bootstrap.servers=file:1\n")
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", "environment:1")
    assert bootstrap_of(parsed("--bootstrap-server", "given:1", "--command-config", path)) == (
        "given:1"
    )
    assert bootstrap_of(parsed("--command-config", path)) == "file:1"
    assert bootstrap_of(parsed()) == "environment:1"
    monkeypatch.delenv("BARNABAS_BOOTSTRAP")
    assert bootstrap_of(parsed()) == BOOTSTRAP


def test_the_environment_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "client.properties", "bootstrap.servers=file:1\n")
    monkeypatch.setenv("BARNABAS_COMMAND_CONFIG", path)
    assert bootstrap_of(parsed()) == "file:1"
    monkeypatch.setenv("BARNABAS_COMMAND_CONFIG", "")
    assert parsed().command_config.path is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "securty.protocol=SSL",
            "securty.protocol: no such option; did you mean security.protocol?",
        ),
        ("pasword=very secret", "pasword: no such option"),
        ("security.protocol=TLS", "security.protocol=TLS: must be PLAINTEXT, SSL, "),
        ("retry.backoff.ms=soon", "retry.backoff.ms=soon: must be a whole number"),
        ("sasl.jaas.config=very secret", "sasl.jaas.config=[hidden]: "),
        ("security.protocol=SASL_SSL", "sasl.mechanism=PLAIN: needs "),
        ("sasl.username=a\nsasl.plain.username=b", "give different values"),
        ("a=\\u12", "a unicode escape has four"),
    ],
)
def test_a_wrong_option_is_named_with_its_file(tmp_path: Path, text: str, complaint: str) -> None:
    path = written(tmp_path / "client.properties", text)
    with pytest.raises(ConfigError) as failure:
        _ = CommandConfig(path).options
    assert str(failure.value).startswith(f"--command-config {path}: ")
    assert complaint in str(failure.value)
    assert "very secret" not in str(failure.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^--command-config .*none: no such file or directory$"):
        _ = CommandConfig(str(tmp_path / "none")).options
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"^--command-config .*bytes: not UTF-8$"):
        _ = CommandConfig(str(tmp_path / "bytes")).options


def test_an_option_is_named_as_the_file_names_it(barnabas: Barnabas, tmp_path: Path) -> None:
    path = written(
        tmp_path / "client.properties", "security.protocol=SSL\nssl.truststore.location=none\n"
    )
    done = barnabas("topics", "list", "--command-config", path)
    assert done.code == 1
    assert done.err == (
        f"barnabas topics: --command-config {path}: ssl.truststore.location=none: "
        "No such file or directory\n"
    )


def test_a_wrong_address_on_the_command_line_is_not_blamed_on_the_file(
    barnabas: Barnabas, tmp_path: Path
) -> None:
    path = written(tmp_path / "client.properties", "client.id=mine\n")
    done = barnabas("topics", "list", "--command-config", path, "--bootstrap-server", "a:b:c")
    assert done.code == 1
    assert "'a:b:c'" in done.err
    assert path not in done.err


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("acks=1", "acks has no effect: commands use only what all clients share"),
        ("group.id=g", "group.id has no effect: commands use only what all clients share"),
        ("retries=3", "retries has no effect: commands use only what all clients share"),
        ("request.timeout.ms=5", "request.timeout.ms has no effect: --timeout decides"),
    ],
)
def test_options_of_one_kind_of_client_may_be_there_to_no_effect(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, reason: str
) -> None:
    path = written(tmp_path / "client.properties", f"{line}\n")
    assert CommandConfig(path).options == {}
    assert capsys.readouterr().err == f"barnabas: {path}: {reason}\n"


def test_options_of_java_alone_reach_no_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = written(tmp_path / "client.properties", "ssl.provider=SunJSSE\nclient.rack=a\n")
    assert CommandConfig(path).options == {"client.rack": "a"}
    assert "ssl.provider is set, but has no effect" in caplog.text


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_password_that_others_can_read_is_warned_about_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: int
) -> None:
    path = written(tmp_path / "client.properties", f"sasl.jaas.config={LOGIN}\n", mode)
    config = CommandConfig(path)
    assert config.options is config.options
    warning = f"barnabas: {path}: has a password, and others can read it; use: chmod 600 {path}\n"
    assert capsys.readouterr().err == warning


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (f"sasl.jaas.config={LOGIN}", 0o600),
        ("client.id=mine", 0o644),
        ("ssl.truststore.certificates=PEM", 0o644),
    ],
)
def test_files_without_secrets_or_readers_are_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, mode: int
) -> None:
    assert CommandConfig(written(tmp_path / "client.properties", text, mode)).options
    assert capsys.readouterr().err == ""


def test_no_secret_is_in_a_repr(tmp_path: Path) -> None:
    path = written(tmp_path / "client.properties", f"sasl.jaas.config={LOGIN}\n")
    arguments = parsed("--command-config", path)
    assert client_options(arguments)["sasl.jaas.config"] == LOGIN
    assert "pw" not in repr(arguments)
