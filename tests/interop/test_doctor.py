"""`barnabas doctor` on Apache Kafka: sound brokers have no red, faults are found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.interop.doors import PLAIN_LOGIN, Doors

from barnabas.cli.main import main
from barnabas.config.properties import write_properties

pytestmark = pytest.mark.interop


def test_apache_kafka_is_sound(apache_bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--bootstrap-server", apache_bootstrap, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert (code, document["red"]) == (0, 0), document
    severity = {finding["check"]: finding["severity"] for finding in document["findings"]}
    for check in ("versions", "metadata", "advertised", "record", "clock", "leaders", "min ISR"):
        assert severity[check] == "green", document


def test_what_does_nothing_in_barnabas_is_not_held_against_kafka(
    apache_bootstrap: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["doctor", "--bootstrap-server", apache_bootstrap, "--read-only"])
    assert "does nothing" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("password", "red"), [("secret", set()), ("wrong", {"sasl"})], ids=["right", "wrong"]
)
def test_a_login_at_apache_kafka(
    doors: Doors,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    password: str,
    red: set[str],
) -> None:
    options = {
        "bootstrap.servers": doors.sasl,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN_LOGIN} username="alice" password="{password}";',
    }
    file = tmp_path / "client.properties"
    file.touch(0o600)
    file.write_text(write_properties(options))
    code = main(["doctor", "--command-config", str(file), "--read-only", "--json"])
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert {each["check"] for each in findings if each["severity"] == "red"} == red
    assert code == bool(red)


def test_a_login_that_apache_kafka_expects(
    doors: Doors, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--bootstrap-server", doors.sasl]) == 1
    line = capsys.readouterr().out.splitlines()[-2]
    assert line.startswith("red    metadata")
    assert "security.protocol=SASL_PLAINTEXT" in line
