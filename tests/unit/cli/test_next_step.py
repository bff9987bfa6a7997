"""Whatever keeps a command out of a secured cluster is one line, with the option and the file."""

from __future__ import annotations

import pytest
from tests.unit.cli.conftest import Barnabas
from tests.unit.cli.secured import PASSWORDS, Secured, jaas

from barnabas.cli.next_step import NO_BROKER, NO_LOGIN, explain_silence, next_step
from barnabas.client.errors import (
    AuthenticationFailedError,
    ConnectionLostError,
    NoBrokersAvailable,
    RequestTimeoutError,
)
from barnabas.model.errors import InvalidValueError


@pytest.mark.parametrize("listener", ["OPEN", "SASL", "TLS", "BOTH"])
def test_the_file_lets_a_command_in(secured: Secured, command: Barnabas, listener: str) -> None:
    path = secured.file(secured.options(listener=listener))
    assert command("cluster", "describe", "--command-config", path)[::2] == (0, "")


CASES: dict[str, tuple[dict[str, str | None], str, str]] = {
    "a wrong password": (
        {"sasl.jaas.config": jaas("admin", "hush")},
        "rejected the credentials (PLAIN): Authentication failed: Invalid username or password",
        "check the user and the password (sasl.jaas.config) in FILE",
    ),
    "a wrong password of SCRAM": (
        {
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": jaas("admin", "hush", "SCRAM-SHA-512"),
        },
        "rejected the credentials (SCRAM-SHA-512)",
        "check the user and the password (sasl.jaas.config) in FILE",
    ),
    "a mechanism that the broker does not offer": (
        {"sasl.mechanism": "OAUTHBEARER", "sasl.oauth.token.provider": "os.getcwd"},
        "does not accept sasl.mechanism=OAUTHBEARER; it offers PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
        "set sasl.mechanism in FILE",
    ),
    "a mechanism that does not exist": (
        {"sasl.mechanism": "DIGEST-MD5"},
        "--command-config FILE: sasl.mechanism=DIGEST-MD5: must be PLAIN, SCRAM-SHA-256, ",
        "",
    ),
    "TLS to a plain port": (
        {"bootstrap.servers": "OPEN"},
        "it may not use TLS: see security.protocol",
        "set it in FILE",
    ),
    "plain bytes to a TLS port": (
        {"security.protocol": "SASL_PLAINTEXT"},
        "it may expect TLS: see security.protocol",
        "set it in FILE",
    ),
    "SASL to a port without it": (
        {"bootstrap.servers": "TLS"},
        "rejected SASL: the request is not allowed at this step of SASL authentication; "
        "see security.protocol",
        "set it in FILE",
    ),
    "no SASL to a port that requires it": (
        {"security.protocol": "SSL"},
        "was closed by the broker before Metadata was answered",
        f"{NO_LOGIN}; set it in FILE",
    ),
    "a certificate that is not trusted": (
        {"ssl.truststore.location": None},
        "its certificate is rejected (unable to get local issuer certificate)",
        "set ssl.truststore.location in FILE to the CA that has issued it",
    ),
    "a certificate of another host": (
        {"bootstrap.servers": "STRANGE", "security.protocol": "SSL"},
        "its certificate is rejected (IP address mismatch",
        "connect by a name in the certificate, or have one issued for this name",
    ),
    "no certificate where one is required": (
        {"bootstrap.servers": "MUTUAL", "security.protocol": "SSL"},
        "it responded with the alert 'certificate required'",
        "check security.protocol and ssl.keystore.location in FILE",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_keeps_a_command_out(secured: Secured, command: Barnabas, name: str) -> None:
    changes, message, step = CASES[name]
    options = {**secured.options(), **changes}
    if (bootstrap := changes.get("bootstrap.servers")) is not None:
        options["bootstrap.servers"] = secured.addresses[bootstrap]
    path = secured.file({key: value for key, value in options.items() if value is not None})
    done = command("topics", "list", "--command-config", path)
    line = done.err.replace(path, "FILE")
    assert (done.code, done.out) == (1, "")
    assert line.count("\n") == 1
    assert line.startswith("barnabas topics: ")
    assert message in line
    assert line.endswith(f"{step}\n")
    assert not any(secret in line for secret in ("hush", *PASSWORDS.values()))


@pytest.mark.parametrize(
    ("listener", "message"), [("SASL", NO_LOGIN), ("TLS", "it may expect TLS"), ("BOTH", "TLS")]
)
def test_without_a_file_the_option_for_one_is_named(
    secured: Secured, command: Barnabas, listener: str, message: str
) -> None:
    done = command("topics", "list", "--bootstrap-server", secured.addresses[listener])
    assert done.code == 1
    assert message in done.err
    assert done.err.endswith("set it in a file, and name it in --command-config\n")


def test_what_is_denied_names_no_file(secured: Secured, command: Barnabas) -> None:
    path = secured.file(secured.options("alice"))
    done = command("topics", "create", "forbidden", "--command-config", path)
    assert done.code == 1
    assert "TOPIC_AUTHORIZATION_FAILED" in done.err
    assert path not in done.err


def test_a_broker_that_cannot_be_reached_may_not_be_running() -> None:
    failure = NoBrokersAvailable("cannot connect to a:1: connection refused")
    explain_silence(failure)
    assert failure.__notes__ == [NO_BROKER]
    assert next_step(failure, "in FILE") is None


def test_a_broker_that_hangs_up_may_require_a_login() -> None:
    failure = NoBrokersAvailable("--source a:1: no broker responds")
    failure.__cause__ = ConnectionLostError("closed by the broker")
    explain_silence(failure)
    assert failure.__notes__ == [NO_LOGIN]
    assert next_step(failure, "in FILE") == "set it in FILE"
    late = RequestTimeoutError("no response in time")
    explain_silence(late)
    assert late.__notes__ == [NO_BROKER]


def test_other_failures_have_no_step() -> None:
    assert next_step(InvalidValueError("topic must be a str"), "in FILE") is None
    step = next_step(AuthenticationFailedError("rejected"), "in FILE")
    assert step == "check the user and the password (sasl.jaas.config) in FILE"
