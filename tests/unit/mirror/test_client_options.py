"""Property files are used, but never against the mirror's guarantees."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.mirror.client_options import ClientOptions, read_source, read_target
from barnabas.model.errors import ConfigError, InvalidValueError


def test_a_file_as_mirror_maker_takes_it(tmp_path: Path) -> None:
    path = tmp_path / "source.properties"
    path.write_text(
        "bootstrap.servers=a:9092\ngroup.id=mirror\nenable.auto.commit=true\n"
        "key.deserializer=org.apache.kafka.common.serialization.ByteArrayDeserializer\n"
        "fetch.min.bytes=10\nauto.offset.reset=latest\n"
    )
    options = read_source(str(path), None)
    consumer = options.consumer
    assert consumer["bootstrap.servers"] == "a:9092"
    assert consumer["fetch.min.bytes"] == "10"
    assert consumer["enable.auto.commit"] == "false"
    assert consumer["auto.offset.reset"] == "none"
    assert consumer["isolation.level"] == "read_committed"
    assert "group.id" not in consumer
    assert "key.deserializer" not in consumer
    assert "fetch.min.bytes" not in options.admin


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    path = tmp_path / "source.properties"
    path.write_text("bootstrap.servers=a:9092\n")
    options = read_source(str(path), "b:9092")
    assert options.given["bootstrap.servers"] == "b:9092"


def test_a_producer_is_always_transactional() -> None:
    options = ClientOptions(
        {"bootstrap.servers": "a:1", "acks": "0", "transactional.id": "x", "linger.ms": "7"}
    )
    producer = options.producer("mine")
    assert producer["acks"] == "all"
    assert producer["transactional.id"] == "mine"
    assert producer["linger.ms"] == "7"


def test_an_address_is_needed() -> None:
    with pytest.raises(InvalidValueError, match="--source HOST:PORT"):
        read_source(None, None)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--producer.config .*none: No such file"):
        read_target(str(tmp_path / "none"), None)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_target(str(tmp_path / "bytes"), None)


def test_names_of_other_clients_reach_every_client(tmp_path: Path) -> None:
    """An admin client was left without the options that the file had by another name."""
    path = tmp_path / "both.properties"
    path.write_text(
        "bootstrap.servers=a:1\nsecurity.protocol=SASL_SSL\nssl.truststore.location=ca.pem\n"
        "sasl.mechanism=PLAIN\nsasl.username=ada\nsasl.password=pw\n"
    )
    for options in (read_source(str(path), None), read_target(str(path), None)):
        for client in (options.admin, options.consumer, options.producer("t")):
            assert client["ssl.cafile"] == "ca.pem"
            assert client["sasl.plain.username"] == "ada"
            assert client["sasl.plain.password"] == "pw"
        assert "pw" not in repr(options)


def test_two_names_of_an_option_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "both.properties"
    path.write_text("bootstrap.servers=a:1\nsasl.username=ada\nsasl.plain.username=bob\n")
    with pytest.raises(ConfigError, match=r"--consumer.config .*both.properties: .* different"):
        read_source(str(path), None)


def test_a_side_without_a_file_has_the_shared_options(tmp_path: Path) -> None:
    path = tmp_path / "own.properties"
    path.write_text("bootstrap.servers=a:1\n")
    shared = {"security.protocol": "SSL"}
    assert read_source(None, "b:1", shared).given == {
        "security.protocol": "SSL",
        "bootstrap.servers": "b:1",
    }
    assert read_target(str(path), None, shared).given == {"bootstrap.servers": "a:1"}


def test_a_wrong_option_is_rejected_early(tmp_path: Path) -> None:
    path = tmp_path / "wrong.properties"
    path.write_text("bootstrap.servers=a:1\nfetch.mim.bytes=1\n")
    with pytest.raises(ConfigError, match=r"fetch\.mim\.bytes: no such option"):
        read_source(str(path), None)
    path.write_text("bootstrap.servers=a:1\nlinger.ms=soon\n")
    with pytest.raises(ConfigError, match=r"linger\.ms"):
        read_target(str(path), None)
