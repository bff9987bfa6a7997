"""The audit log: who did, or was not allowed to do, what, to what, and from where.

One JSON object per line, by the logger `barnabas.audit`: denied requests, failed logins and changes
of ACLs, users, tokens, quotas and configs at INFO; allowed requests and logins at DEBUG. Names that
clients chose are cut and escaped, and secrets never get here.

    {"time":"2025-01-31T12:00:00.123Z","event":"authorization","principal":"User:eve",
     "host":"10.0.0.9","listener":"SASL_SSL","api":"Produce","operation":"WRITE",
     "resource":"Topic:orders","result":"denied","rule":"no ACL matches","count":1}
    {"time":"2025-01-31T12:00:01.456Z","event":"login","host":"10.0.0.9","listener":"SASL_SSL",
     "mechanism":"PLAIN","result":"denied","reason":"…","count":1}

The first of several equal events is logged at once; how often it was repeated within the second is
said in one more line. A principal gets a limited number of lines per second, and so does an address
from which logins fail; what is beyond is counted, and the count is logged as an event `suppressed`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Hashable
from datetime import UTC, datetime

logger = logging.getLogger("barnabas.audit")

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


class AuditLog:
    """Folds and limits events, and writes the lines."""

    def __init__(self, now_ms: Callable[[], int], later: Later) -> None:
        self._now_ms = now_ms
        self._later = later
        self._repeats: dict[Hashable, tuple[int, Fields, int]] = {}
        """Repeats that were not logged, with their fields and level, by what is equal in them."""
        self._lines: dict[Subject, int] = {}
        """Lines in this window, by who gets them."""
        self._suppressed: dict[Subject, int] = {}
        """Events in this window that exceeded the limit, by who got too many."""
        self._window_open = False

    @property
    def logs_allowed(self) -> bool:
        """Whether allowed requests are logged, too."""
        return logger.isEnabledFor(logging.DEBUG)

    def decision(
        self,
        principal: str,
        host: str,
        listener: str,
        api: str,
        operation: str,
        resource: str,
        allowed: bool,
        rule: Callable[[], str],
    ) -> None:
        """Record an authorization; `rule` is called only if a line is written."""
        result = "allowed" if allowed else "denied"
        level = logging.DEBUG if allowed else logging.INFO
        key = (principal, operation, resource, result)
        if not self._is_new(("principal", principal), key, level):
            return
        fields = {
            "event": "authorization",
            "principal": principal,
            "host": host,
            "listener": listener,
            "api": api,
            "operation": operation,
            "resource": resource,
            "result": result,
            "rule": rule(),
        }
        self._repeats[key] = (0, fields, level)
        self._write(fields, 1, level)

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
        if self._is_new(subject, key, level):
            self._repeats[key] = (0, fields, level)
            self._write(fields, 1, level)

    def flush(self) -> None:
        """End the window: log the repeats and what was suppressed."""
        self._window_open = False
        repeats, self._repeats = self._repeats, {}
        suppressed, self._suppressed = self._suppressed, {}
        self._lines = {}
        for count, fields, level in repeats.values():
            if count:
                self._write(fields, count, level)
        for (field, value), count in suppressed.items():
            self._write({"event": "suppressed", field: value}, count, logging.INFO)

    def _is_new(self, subject: Subject, key: Hashable, level: int) -> bool:
        """Return whether an event gets a line of its own now; else it is counted."""
        if not logger.isEnabledFor(level):
            return False
        if not self._window_open:
            self._window_open = True
            self._later(WINDOW_MS, self.flush)
        repeated = self._repeats.get(key)
        if repeated is not None:
            count, fields, level = repeated
            self._repeats[key] = (count + 1, fields, level)
            return False
        lines = self._lines.get(subject, 0)
        if lines >= LINES_PER_WINDOW_MAX or len(self._repeats) >= TRACKED_MAX:
            if subject not in self._suppressed and len(self._suppressed) >= TRACKED_MAX:
                subject = (subject[0], "(others)")
            self._suppressed[subject] = self._suppressed.get(subject, 0) + 1
            return False
        self._lines[subject] = lines + 1
        return True

    def _write(self, fields: Fields, count: int, level: int) -> None:
        at = datetime.fromtimestamp(self._now_ms() / 1000, UTC)
        line: dict[str, object] = {"time": at.isoformat(timespec="milliseconds")[:-6] + "Z"}
        line |= {name: _cut(value) for name, value in fields.items()}
        line["count"] = count
        logger.log(level, "%s", json.dumps(line, separators=(",", ":")))


def _cut(value: str) -> str:
    return value if len(value) <= TEXT_MAX else value[:TEXT_MAX] + "…"
