"""Files of clients: what programs say is what the options are, without the password."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from barnabas.config.properties import read_properties
from barnabas.security.setup.client_files import client_files
from barnabas.security.setup.client_options import ClientOptions

PASSWORD = "hush" * 8


@pytest.fixture(params=["SASL_SSL", "SASL_PLAINTEXT", "SSL"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> ClientOptions:
    home = tmp_path / "app"
    home.mkdir()
    return ClientOptions(
        "k1:9092", request.param, home / "ca.crt", "app", PASSWORD, home / "client.pem"
    )


def run(home: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names of a program that was imported; its libraries need not be there."""
    for library in ("confluent_kafka", "kafka", "aiokafka", "aiokafka.helpers", "pyspark.sql"):
        module = ModuleType(library)
        module.__getattr__ = lambda _: lambda **given: given  # type: ignore[method-assign]
        monkeypatch.setitem(sys.modules, library, module)
    path = home / name
    names: dict[str, Any] = {"__file__": str(path), "__name__": "imported"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names


def test_programs_have_the_options(options: ClientOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    home = options.cafile.parent
    (home / "password").write_text(f"{PASSWORD}\n")
    files = client_files(options, "app-")
    for name, content in files.items():
        (home / name).write_text(content)
        assert (PASSWORD in content) == (
            name in ("client.properties", "librdkafka.conf") and options.uses_sasl
        ), name

    def imported(name: str) -> dict[str, Any]:
        names = run(home, name, monkeypatch)
        assert (names["TOPIC"], names["GROUP"]) == ("app-hello", "app-group")
        found: dict[str, Any] = names["OPTIONS"]
        return found

    assert imported("confluent_kafka_example.py") == options.librdkafka()
    assert imported("kafka_python_example.py") == options.kafka_python()
    assert imported("barnabas_example.py") == options.kafka_python()
    assert imported("spark_example.py") == {
        f"kafka.{name}": value for name, value in options.kafka().items()
    }
    aio = imported("aiokafka_example.py")
    context = aio.pop("ssl_context", {})
    arguments = {**aio, **{f"ssl_{name}": value for name, value in context.items()}}
    assert arguments == options.kafka_python()


def test_properties_are_read_back(options: ClientOptions) -> None:
    files = client_files(options, "app-")
    assert read_properties(files["client.properties"]) == options.kafka()
    lines = files["librdkafka.conf"].splitlines()
    assert dict(line.split("=", 1) for line in lines) == options.librdkafka()


def test_every_file_is_there(options: ClientOptions) -> None:
    assert [*client_files(options, "app-")] == [
        "client.properties",
        "librdkafka.conf",
        "confluent_kafka_example.py",
        "kafka_python_example.py",
        "aiokafka_example.py",
        "barnabas_example.py",
        "spark_example.py",
        "kafkajs_example.js",
    ]


def test_a_program_in_javascript_has_the_options(options: ClientOptions) -> None:
    text = client_files(options, "app-")["kafkajs_example.js"]
    assert ('mechanism: "scram-sha-512"' in text) == options.uses_sasl
    assert ('ca: read("ca.crt"), cert: read("client.pem")' in text) == options.uses_tls
    assert 'brokers: ["k1:9092"]' in text
