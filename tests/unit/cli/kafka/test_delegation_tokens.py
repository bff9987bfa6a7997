"""`kafka-delegation-tokens`: a token from its creation to its end."""

from __future__ import annotations

import pytest
from tests.unit.cli.kafka.tool_runs import RunTool, runner
from tests.unit.cli.secured import Secured


@pytest.fixture
def tokens(secured: Secured, capsys: pytest.CaptureFixture[str]) -> RunTool:
    options = secured.options()
    run = runner("kafka-delegation-tokens.sh", options["bootstrap.servers"], capsys)
    file = secured.file(options)
    return lambda *words: run("--command-config", file, *words)


def test_a_token(tokens: RunTool) -> None:
    renewer = ("--renewer-principal", "User:alice")
    run = tokens("--create", "--max-life-time-period", "-1", *renewer)
    assert (run.code, run.err) == (0, "")
    called, created, _, head, _, row, *_ = run.out.split("\n")
    assert called == (
        "Calling create token operation with renewers :[User:alice] , max-life-time-period :-1"
    )
    token, hmac, owner, *_ = row.split()
    assert created == f"Created delegation token with tokenId : {token}"
    assert head.split()[:3] == ["TOKENID", "HMAC", "OWNER"]
    assert owner == "User:admin"
    run = tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert run.out.startswith(
        f"Calling renew token operation with hmac :{hmac} , renew-time-period :-1\n"
        "Completed renew operation. New expiry date : "
    )
    listed = tokens("--describe", "--owner-principal", "User:admin").out
    assert token in listed
    run = tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert (run.code, "Completed expire operation" in run.out) == (0, True)
    assert token not in tokens("--describe", "--owner-principal", "User:admin").out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "exactly one action: --create, --renew, --expire, --describe"),
        (("--create",), 'Missing required argument "[max-life-time-period]"'),
        (("--renew", "--renew-time-period", "-1"), 'Missing required argument "[hmac]"'),
        (("--renew", "--renew-time-period", "-1", "--hmac", "?"), "must be the HMAC of a token"),
        (("--describe", "--hmac", "aaaa"), "can't be used with option"),
    ],
)
def test_misuse(tokens: RunTool, words: tuple[str, ...], text: str) -> None:
    run = tokens(*words)
    assert (run.code, run.out) == (1, "")
    assert text in run.err
    assert len(run.err.splitlines()) == 1


def test_an_unknown_token(tokens: RunTool) -> None:
    run = tokens("--expire", "--expiry-time-period", "-1", "--hmac", "aaaa")
    assert run.code == 1
    assert run.err.startswith("Error while executing delegation token command : ")
    assert len(run.err.splitlines()) == 1
