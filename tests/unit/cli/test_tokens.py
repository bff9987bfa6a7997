"""`barnabas tokens`: tokens that log their owner in, and secrets that are shown when asked for."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.handlers.test_delegation_tokens import by_token
from tests.unit.broker.serving import Wire
from tests.unit.cli.conftest import Barnabas, Run
from tests.unit.cli.secured import Secured

from barnabas.admin.tokens import DelegationToken
from barnabas.cli.tokens import _properties, _time
from barnabas.config.jaas import jaas_entry
from barnabas.config.properties import read_properties

HOUR_MS = 3_600_000
TOKEN = DelegationToken("an-id", b"\xff\x00hmac", "User:ada", None, 0, HOUR_MS, 2 * HOUR_MS, ())


@pytest.fixture
def as_alice(secured: Secured, command: Barnabas) -> Barnabas:
    file = secured.file(secured.options("alice"))
    return lambda *words: command(*words, "--command-config", file)


def created(done: Run) -> dict[str, Any]:
    assert done.code == 0, done.err
    [token] = json.loads(done.out)
    assert isinstance(token, dict)
    return token


def test_the_written_file_logs_in_by_the_token(
    secured: Secured, command: Barnabas, tmp_path: Path
) -> None:
    path = tmp_path / "token.properties"
    own = secured.file(secured.options("alice", "SASL"))
    made = ("tokens", "create", "--output", str(path), "--mechanism", "SCRAM-SHA-512", "--json")
    done = command(*made, "--command-config", own)
    token = created(done)
    assert (token["owner"], token["requester"]) == ("User:alice", "User:alice")
    assert done.err == f"client options that use the token: {path}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    options = read_properties(path.read_text())
    login = jaas_entry(options.pop("sasl.jaas.config"), "sasl.jaas.config")
    assert options == {
        "bootstrap.servers": secured.addresses["SASL"],
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
    }
    assert login.module == "org.apache.kafka.common.security.scram.ScramLoginModule"
    assert login.options["username"] == token["id"]
    assert login.options["tokenauth"] == "true"
    secret = login.options["password"]
    assert secret not in done.out + done.err
    host, port = options["bootstrap.servers"].split(":")
    with Wire((host, int(port))) as wire:
        answer = by_token(wire, token["id"], base64.b64decode(secret), "SCRAM-SHA-512")
    assert answer.error_code == 0


def test_the_secret_is_shown_when_it_is_asked_for(as_alice: Barnabas) -> None:
    done = as_alice("tokens", "create", "--json")
    token = created(done)
    assert "hmac" not in token
    assert done.err == "its secret: barnabas tokens list --show-secret\n"
    listed = as_alice("tokens", "list")
    assert token["id"] in listed.out
    assert "hmac" not in listed.out
    shown = json.loads(as_alice("tokens", "list", "--show-secret", "--json").out)
    [secret] = [each["hmac"] for each in shown if each["id"] == token["id"]]
    assert len(base64.b64decode(secret)) == 64
    assert secret not in listed.out
    assert secret in as_alice("tokens", "list", "--show-secret").out
    other = as_alice("tokens", "create", "--show-secret")
    assert "hmac" in other.out.splitlines()[0]
    assert other.err == ""


def test_owners_renewers_and_lifetimes(as_admin: Barnabas, as_alice: Barnabas) -> None:
    words = ("--owner", "alice", "--renewer", "bob", "--renewer", "User:carol")
    done = as_admin("tokens", "create", *words, "--max-lifetime", "2h", "--json")
    token = created(done)
    assert (token["owner"], token["requester"]) == ("User:alice", "User:admin")
    assert token["renewers"] == ["User:bob", "User:carol"]
    assert token["max_ms"] - token["issue_ms"] == 2 * HOUR_MS
    assert token["expiry_ms"] <= token["max_ms"]
    mine = json.loads(as_alice("tokens", "list", "--owner", "alice", "--json").out)
    assert token["id"] in [each["id"] for each in mine]
    assert json.loads(as_alice("tokens", "list", "--owner", "nobody", "--json").out) == []
    expired = as_admin("tokens", "expire", token["id"])
    assert expired.code == 0, "who has requested a token may expire it"


def test_a_token_is_renewed_and_expired_by_its_id(as_alice: Barnabas) -> None:
    token = created(as_alice("tokens", "create", "--json"))
    name = token["id"]
    renewed = as_alice("tokens", "renew", name, "--period", "1h", "--json")
    assert json.loads(renewed.out)["expiry_ms"] < token["expiry_ms"]
    assert as_alice("tokens", "renew", name).out.startswith(f"token {name} expires at 20")
    later = as_alice("tokens", "expire", name, "--after", "10m")
    assert (later.code, later.out.startswith(f"token {name} expires at ")) == (0, True)
    assert as_alice("tokens", "expire", name).out.startswith(f"token {name} expired at ")
    for action in ("renew", "expire"):
        gone = as_alice("tokens", action, name)
        assert gone.code == 1
        assert gone.err == (
            f"barnabas tokens: token {name}: does not exist, or you may not see it; "
            "barnabas tokens list shows those that you may see\n"
        )


def test_a_file_is_not_replaced_and_no_token_is_left_behind(
    as_alice: Barnabas, tmp_path: Path
) -> None:
    def tokens() -> int:
        return len(json.loads(as_alice("tokens", "list", "--json").out))

    before = tokens()
    path = tmp_path / "token.properties"
    path.write_text("mine")
    done = as_alice("tokens", "create", "--output", str(path))
    assert (done.code, done.err) == (
        1,
        f"barnabas tokens: --output {path}: exists; remove it first\n",
    )
    assert path.read_text() == "mine"
    done = as_alice("tokens", "create", "--output", str(tmp_path / "none" / "token"))
    assert done.err.endswith("none/token: no such file or directory\n")
    assert tokens() == before


def test_no_file_is_left_behind_if_there_is_no_token(
    secured: Secured, command: Barnabas, tmp_path: Path
) -> None:
    path = tmp_path / "token.properties"
    tls = secured.file(secured.options(listener="TLS"))
    done = command("tokens", "create", "--output", str(path), "--command-config", tls)
    assert done.code == 1
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in done.err
    assert not path.exists()


def test_options_that_others_need_are_handed_on_by_javas_names() -> None:
    own = {
        "bootstrap.servers": "a:1,b:2",
        "client.id": "mine",
        "security.protocol": "SSL",
        "ssl.cafile": "ca.pem",
        "ssl.truststore.type": "PEM",
        "ssl.keystore.location": "my-key.pem",
        "ssl.password": "my password",
        "ssl.check.hostname": "false",
        "sasl.plain.password": "my other password",
    }
    text = _properties(TOKEN, own, None)
    assert text.startswith(
        "# Logs in as User:ada by a delegation token, until 1970-01-01T01:00:00Z\n"
        "# unless it is renewed, and until 1970-01-01T02:00:00Z at the latest.\n"
    )
    assert read_properties(text) == {
        "bootstrap.servers": "a:1,b:2",
        "ssl.truststore.location": "ca.pem",
        "ssl.truststore.type": "PEM",
        "ssl.endpoint.identification.algorithm": "",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="an-id" password="/wBobWFj" tokenauth="true";',
    }
    same = _properties(TOKEN, {**own, "sasl.mechanism": "SCRAM-SHA-512"}, None)
    assert read_properties(same)["sasl.mechanism"] == "SCRAM-SHA-512"


def test_times_beyond_the_calendar_are_shown_in_milliseconds() -> None:
    assert _time(0) == "1970-01-01T00:00:00Z"
    assert _time(1 << 62) == f"@{1 << 62}"


def test_a_token_hides_its_secret() -> None:
    assert "hmac" not in repr(TOKEN)


@pytest.mark.parametrize("span", ["0s", "-1h", "1 h", "h", "9999999999999d"])
def test_a_span_that_is_none_is_named(command: Barnabas, span: str) -> None:
    done = command("tokens", "create", f"--max-lifetime={span}")
    assert done.code == 2
    assert f"{span!r} is not a time span like 90s, 15m, 8h or 7d" in done.err


def test_a_mechanism_without_a_file_is_a_mistake(command: Barnabas) -> None:
    done = command("tokens", "create", "--mechanism", "SCRAM-SHA-512")
    assert (done.code, done.err) == (
        1,
        "barnabas tokens: --mechanism is for the file of --output\n",
    )
