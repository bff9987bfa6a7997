"""The audit log: one line each, repeats folded, principals limited."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.security import audit
from barnabas.security.acl.binding import Binding, Entry, Pattern, PatternType, Permission
from barnabas.security.audit import AuditLog
from barnabas.security.authorizer import Operation, ResourceType


class Clock:
    """Time moved by hand, and what is to be called later."""

    def __init__(self) -> None:
        self.now_ms = 1_738_324_800_123
        self.calls: list[tuple[int, Callable[[], None]]] = []

    def later(self, delay_ms: int, act: Callable[[], None]) -> None:
        self.calls.append((self.now_ms + delay_ms, act))

    def let_pass(self, ms: int) -> None:
        self.now_ms += ms
        due = [act for at, act in self.calls if at <= self.now_ms]
        self.calls = [(at, act) for at, act in self.calls if at > self.now_ms]
        for act in due:
            act()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock) -> AuditLog:
    return AuditLog(lambda: clock.now_ms, clock.later)


def decide(
    log: AuditLog, principal: str = "User:eve", topic: str = "t", allowed: bool = False
) -> None:
    log.decision(
        principal, "h", "SSL", "Fetch", "READ", f"Topic:{topic}", allowed, lambda: "no ACL matches"
    )


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    found = [json.loads(record.getMessage()) for record in caplog.records]
    caplog.clear()
    return found


@pytest.fixture(autouse=True)
def _level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "barnabas.audit")


def test_a_denial_is_one_line(log: AuditLog, caplog: pytest.LogCaptureFixture) -> None:
    """It says everything that an operator needs to act."""
    decide(log)
    assert lines(caplog) == [
        {
            "time": "2025-01-31T12:00:00.123Z",
            "event": "authorization",
            "principal": "User:eve",
            "host": "h",
            "listener": "SSL",
            "api": "Fetch",
            "operation": "READ",
            "resource": "Topic:t",
            "result": "denied",
            "rule": "no ACL matches",
            "count": 1,
        }
    ]


def test_allowed_requests_are_logged_for_debugging_alone(
    log: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    assert not log.logs_allowed
    decide(log, allowed=True)
    assert lines(caplog) == []
    caplog.set_level(logging.DEBUG, "barnabas.audit")
    assert log.logs_allowed
    decide(log, allowed=True)
    assert [line["result"] for line in lines(caplog)] == ["allowed"]


def test_repeats_within_a_second_are_one_more_line(
    log: AuditLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(50):
        decide(log)
    assert [line["count"] for line in lines(caplog)] == [1]
    clock.let_pass(audit.WINDOW_MS)
    assert [line["count"] for line in lines(caplog)] == [49]
    clock.let_pass(audit.WINDOW_MS)
    assert lines(caplog) == []
    decide(log)
    assert [line["count"] for line in lines(caplog)] == [1]


def test_a_principal_has_a_limit_that_others_do_not_share(
    log: AuditLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(100):
        decide(log, topic=f"t{number}")
    decide(log, "User:mallory")
    written = lines(caplog)
    assert len(written) == audit.LINES_PER_WINDOW_MAX + 1
    assert written[-1]["principal"] == "User:mallory"
    clock.let_pass(audit.WINDOW_MS)
    (told,) = lines(caplog)
    assert (told["event"], told["principal"]) == ("suppressed", "User:eve")
    assert told["count"] == 100 - audit.LINES_PER_WINDOW_MAX


def test_what_is_tracked_is_bounded(
    log: AuditLog,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither memory nor the log grows with the number of made-up names."""
    monkeypatch.setattr(audit, "TRACKED_MAX", 3)
    for number in range(10):
        decide(log, f"User:u{number}")
    assert len(lines(caplog)) == 3
    clock.let_pass(audit.WINDOW_MS)
    counts = {line["principal"]: line["count"] for line in lines(caplog)}
    assert sum(counts.values()) == 7
    assert counts["(others)"] == 4


def test_names_cannot_forge_lines(log: AuditLog, caplog: pytest.LogCaptureFixture) -> None:
    """Control characters are escaped, long names are cut."""
    decide(log, 'User:a\n{"principal":"User:admin"}\x1b[2J', topic="x" * 1000)
    (record,) = caplog.records
    text = record.getMessage()
    assert "\n" not in text
    assert "\x1b" not in text
    assert len(json.loads(text)["resource"]) == audit.TEXT_MAX + 1


def test_changes_and_logins_are_events(log: AuditLog, caplog: pytest.LogCaptureFixture) -> None:
    log.event("acl added", "User:admin", "h", "SSL", acl="User:a has ALLOW permission")
    log.event("acl added", "User:admin", "h", "SSL", acl="User:b has ALLOW permission")
    assert [line["acl"][:6] for line in lines(caplog)] == ["User:a", "User:b"]


def fail(log: AuditLog, host: str = "h", reason: str = "wrong password: 'eve'") -> None:
    log.failed_login(host, "SASL", "PLAIN", reason, again=False)


def test_logins_are_logged_for_debugging_and_failed_ones_always(
    log: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.login("User:alice", "h", "SASL", "PLAIN", again=False)
    assert lines(caplog) == []
    fail(log)
    (told,) = lines(caplog)
    assert told == {
        "time": "2025-01-31T12:00:00.123Z",
        "event": "login",
        "host": "h",
        "listener": "SASL",
        "mechanism": "PLAIN",
        "result": "denied",
        "reason": "wrong password: 'eve'",
        "count": 1,
    }
    caplog.set_level(logging.DEBUG, "barnabas.audit")
    log.login("User:alice", "h", "SASL", "PLAIN", again=True)
    (told,) = lines(caplog)
    assert (told["event"], told["principal"], told["result"]) == (
        "re-login",
        "User:alice",
        "allowed",
    )


def test_an_address_that_guesses_has_a_limit_that_others_do_not_share(
    log: AuditLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(100):
        fail(log, reason=f"unknown user: 'u{number}'")
    fail(log, "other")
    decide(log)
    written = lines(caplog)
    assert len(written) == audit.LINES_PER_WINDOW_MAX + 2
    assert [line["host"] for line in written[-2:]] == ["other", "h"]
    clock.let_pass(audit.WINDOW_MS)
    (told,) = lines(caplog)
    assert (told["event"], told["host"]) == ("suppressed", "h")
    assert told["count"] == 100 - audit.LINES_PER_WINDOW_MAX


AUTHORIZER = "barnabas.authorizer"


@pytest.fixture
def kafka_lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return the new lines in Kafka's words."""
    caplog.set_level(logging.INFO, AUTHORIZER)

    def new() -> list[str]:
        found = [each.getMessage() for each in caplog.records if each.name == AUTHORIZER]
        caplog.clear()
        return found

    return new


def test_a_denial_is_a_line_in_kafkas_words(
    log: AuditLog, clock: Clock, kafka_lines: Callable[[], list[str]]
) -> None:
    """Repeats are counted as references to the resource."""
    for _ in range(3):
        decide(log)
    words = (
        "Principal = User:eve is Denied operation = READ from host = h on resource = "
        "Topic:LITERAL:t for request = Fetch with resourceRefCount = {} based on rule "
        "no ACL matches"
    )
    assert kafka_lines() == [words.format(1)]
    clock.let_pass(audit.WINDOW_MS)
    assert kafka_lines() == [words.format(2)]


@pytest.mark.parametrize(
    ("pattern", "rule"),
    [
        (Pattern(ResourceType.TOPIC, "t"), "DENY User:eve READ host *"),
        (
            Pattern(ResourceType.TOPIC, "*"),
            "DENY User:eve READ host * on Topic:LITERAL:*",
        ),
        (
            Pattern(ResourceType.TOPIC, "t", PatternType.PREFIXED),
            "DENY User:eve READ host * on Topic:PREFIXED:t",
        ),
    ],
)
def test_the_rule_is_spelled_out(
    log: AuditLog, kafka_lines: Callable[[], list[str]], pattern: Pattern, rule: str
) -> None:
    binding = Binding(pattern, Entry("User:eve", "*", Operation.READ, Permission.DENY))
    log.decision("User:eve", "h", "SSL", "Fetch", "READ", "Topic:t", False, lambda: binding)
    (line,) = kafka_lines()
    assert line.endswith(f" with resourceRefCount = 1 based on rule {rule}")


def test_grants_are_logged_for_debugging(
    log: AuditLog, caplog: pytest.LogCaptureFixture, kafka_lines: Callable[[], list[str]]
) -> None:
    decide(log, allowed=True)
    assert kafka_lines() == []
    caplog.set_level(logging.DEBUG, AUTHORIZER)
    assert log.logs_allowed
    decide(log, allowed=True)
    (line,) = kafka_lines()
    assert line.startswith("Principal = User:eve is Allowed operation = READ ")


def test_one_of_both_logs_may_be_silent(
    log: AuditLog, caplog: pytest.LogCaptureFixture, kafka_lines: Callable[[], list[str]]
) -> None:
    caplog.set_level(logging.ERROR, "barnabas.audit")
    caplog.set_level(logging.INFO, AUTHORIZER)
    decide(log)
    assert [record.name for record in caplog.records] == [AUTHORIZER]
    caplog.clear()
    log.event("acl.created", "User:eve", "h", "SSL")
    assert caplog.records == []


def test_names_in_kafkas_words_forge_no_line(
    log: AuditLog, kafka_lines: Callable[[], list[str]]
) -> None:
    decide(log, "User:eve\nPrincipal = User:admin is Allowed", "t\u2028" + "x" * 1000)
    (line,) = kafka_lines()
    assert line.isprintable()
    assert len(line) < 600


def test_the_object_has_its_keys_for_machines(
    log: AuditLog, caplog: pytest.LogCaptureFixture
) -> None:
    decide(log)
    (record,) = caplog.records
    extra = vars(record)
    assert (extra["event"], extra["summary"]) == ("authorization", "authorization denied")
    assert extra["fields"]["principal"] == "User:eve"
    assert extra["fields"]["count"] == 1
    assert "time" not in extra["fields"]
