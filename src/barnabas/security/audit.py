"""The audit log: who did, or was not allowed to do, what, to what, and from where.

One JSON object per line, by the logger `barnabas.audit`: denied requests, failed logins and changes
of ACLs, users, tokens, quotas and configs at INFO; allowed requests and logins at DEBUG. Names that
clients chose are cut and escaped, and secrets never get here.

    {"time":"2025-01-31T12:00:00.123Z","event":"authorization","principal":"User:eve",
     "host":"10.0.0.9","listener":"SASL_SSL","api":"Produce","operation":"WRITE",
     "resource":"Topic:orders","result":"denied","rule":"no ACL matches","count":1}
    {"time":"2025-01-31T12:00:01.456Z","event":"login","host":"10.0.0.9","listener":"SASL_SSL",
     "mechanism":"PLAIN","result":"denied","reason":"…","count":1}

Denied requests are also lines of `barnabas.authorizer`, in the words of Kafka's authorizer log,
which tools look for; allowed ones are at DEBUG:

    Principal = User:eve is Denied operation = WRITE from host = 10.0.0.9
    on resource = Topic:LITERAL:orders for request = Produce with resourceRefCount = 1
    based on rule no ACL matches

The first of several equal events is logged at once; how often it was repeated within the second is
said in one more line. A principal gets a limited number of lines per second, and so does an address
from which logins fail; what is beyond is counted, and the count is logged as an event `suppressed`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from typing import NamedTuple

from barnabas.logging.text import cut, printable
from barnabas.security.acl.binding import Binding, Pattern

logger = logging.getLogger("barnabas.audit")
authorizer_logger = logging.getLogger("barnabas.authorizer")

WINDOW_MS = 1000
LINES_PER_WINDOW_MAX = 10
"""How many lines one principal, or one address, gets per window."""

TRACKED_MAX = 10_000
"""How many different events, and principals, are tracked at a time; further ones are counted."""

TEXT_MAX = 256
"""Characters of a value; the rest is cut."""

Later = Callable[[int, Callable[[], None]], object]
"""Calls a function after so many milliseconds."""

Fields = dict[str, str]

Subject = tuple[str, str]
"""Who has a limit: the name of a field, `principal` or `host`, and its value."""


class _Event(NamedTuple):
    """What is logged, once or with a count."""

    fields: Fields
    level: int
    rule: str = ""
    """The rule of an authorization as Kafka's authorizer log has it; empty for another event."""


class AuditLog:
    """Folds and limits events, and writes the lines."""

    def __init__(self, now_ms: Callable[[], int], later: Later) -> None:
        self._now_ms = now_ms
        self._later = later
        self._repeats: dict[Hashable, tuple[int, _Event]] = {}
        """How often an event was repeated without a line, by what is equal in the repeats."""
        self._lines: dict[Subject, int] = {}
        """Lines in this window, by who gets them."""
        self._suppressed: dict[Subject, int] = {}
        """Events in this window that exceeded the limit, by who got too many."""
        self._window_open = False

    @property
    def logs_allowed(self) -> bool:
        """Whether allowed requests are logged, too."""
        return _is_logged(logging.DEBUG, is_authorization=True)

    def decision(
        self,
        principal: str,
        host: str,
        listener: str,
        api: str,
        operation: str,
        resource: str,
        allowed: bool,
        rule: Callable[[], Binding | str],
    ) -> None:
        """Record an authorization; `rule` is called only if a line is written."""
        result = "allowed" if allowed else "denied"
        level = logging.DEBUG if allowed else logging.INFO
        key = (principal, operation, resource, result)
        if not _is_logged(level, is_authorization=True):
            return
        if not self._is_new(("principal", principal), key):
            return
        decided_by = rule()
        fields = {
            "event": "authorization",
            "principal": principal,
            "host": host,
            "listener": listener,
            "api": api,
            "operation": operation,
            "resource": resource,
            "result": result,
            "rule": str(decided_by),
        }
        self._log(key, _Event(fields, level, _brief(decided_by, resource)))

    def event(self, event: str, principal: str, host: str, listener: str, **details: str) -> None:
        """Record a change of ACLs, credentials, tokens, quotas or configs."""
        fields = {"event": event, "principal": principal, "host": host, "listener": listener}
        self._record(("principal", principal), fields | details, logging.INFO)

    def login(
        self, principal: str, host: str, listener: str, mechanism: str, *, again: bool
    ) -> None:
        """Record that a client has logged in, or renewed its session."""
        if not logger.isEnabledFor(logging.DEBUG):
            return
        fields = {"event": "re-login" if again else "login", "principal": principal, "host": host}
        fields |= {"listener": listener, "mechanism": mechanism, "result": "allowed"}
        self._record(("principal", principal), fields, logging.DEBUG)

    def failed_login(
        self, host: str, listener: str, mechanism: str, reason: str, *, again: bool
    ) -> None:
        """Record that a client was not let in; the name that it gave is in the reason."""
        fields = {"event": "re-login" if again else "login", "host": host, "listener": listener}
        fields |= {"mechanism": mechanism, "result": "denied", "reason": reason}
        self._record(("host", host), fields, logging.INFO)

    def _record(self, subject: Subject, fields: Fields, level: int) -> None:
        key = tuple(fields.items())
        if _is_logged(level) and self._is_new(subject, key):
            self._log(key, _Event(fields, level))

    def _log(self, key: Hashable, event: _Event) -> None:
        self._repeats[key] = (0, event)
        _write(event, 1, self._now_ms())

    def flush(self) -> None:
        """End the window: log the repeats and what was suppressed."""
        self._window_open = False
        repeats, self._repeats = self._repeats, {}
        suppressed, self._suppressed = self._suppressed, {}
        self._lines = {}
        now_ms = self._now_ms()
        for count, event in repeats.values():
            if count:
                _write(event, count, now_ms)
        for (field, value), count in suppressed.items():
            _write(_Event({"event": "suppressed", field: value}, logging.INFO), count, now_ms)

    def _is_new(self, subject: Subject, key: Hashable) -> bool:
        """Return whether an event gets a line of its own now; else it is counted."""
        if not self._window_open:
            self._window_open = True
            self._later(WINDOW_MS, self.flush)
        repeated = self._repeats.get(key)
        if repeated is not None:
            count, event = repeated
            self._repeats[key] = (count + 1, event)
            return False
        lines = self._lines.get(subject, 0)
        if lines >= LINES_PER_WINDOW_MAX or len(self._repeats) >= TRACKED_MAX:
            if subject not in self._suppressed and len(self._suppressed) >= TRACKED_MAX:
                subject = (subject[0], "(others)")
            self._suppressed[subject] = self._suppressed.get(subject, 0) + 1
            return False
        self._lines[subject] = lines + 1
        return True


def _is_logged(level: int, *, is_authorization: bool = False) -> bool:
    return logger.isEnabledFor(level) or (
        is_authorization and authorizer_logger.isEnabledFor(level)
    )


def _write(event: _Event, count: int, now_ms: int) -> None:
    fields, level, rule = event
    at = datetime.fromtimestamp(now_ms / 1000, UTC)
    line: dict[str, object] = {"time": at.isoformat(timespec="milliseconds")[:-6] + "Z"}
    line |= {name: cut(value, TEXT_MAX) for name, value in fields.items()}
    line["count"] = count
    own: dict[str, object] = {
        name: value for name, value in line.items() if name not in ("time", "event")
    }
    extra = {"event": fields["event"], "fields": own}
    summary = " ".join(filter(None, (fields["event"], fields.get("result"))))
    # Without arguments: those of a log line are cut, and this is one object.
    logger.log(level, json.dumps(line, separators=(",", ":")), extra=extra | {"summary": summary})
    if rule:
        authorizer_logger.log(level, _kafka_line(fields, count, rule), extra=extra)


def _kafka_line(fields: Fields, count: int, rule: str) -> str:
    """Return an authorization in the words of Kafka's authorizer log."""
    shown = {name: printable(cut(value)) for name, value in fields.items()}
    kind, _, name = shown["resource"].partition(":")
    return (
        f"Principal = {shown['principal']} is {shown['result'].title()} "
        f"operation = {shown['operation']} from host = {shown['host']} "
        f"on resource = {kind}:LITERAL:{name} for request = {shown['api']} "
        f"with resourceRefCount = {count} based on rule {printable(rule)}"
    )


def _brief(rule: Binding | str, resource: str) -> str:
    """Return a rule as the end of a line that has said the resource."""
    if isinstance(rule, str):
        return rule
    pattern, entry = rule
    text = f"{entry.permission.name} {entry.principal} {entry.operation.name} host {entry.host}"
    name = resource.partition(":")[2]
    same = pattern == Pattern(pattern.resource_type, name)
    return text if same else f"{text} on {pattern}"
