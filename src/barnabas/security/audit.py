"""The audit log: who did, or was not allowed to do, what, to what, and from where.

One JSON object per line, by the logger `barnabas.audit`: denied requests at INFO, allowed ones at
DEBUG, logins and changes of security at INFO. Names that clients chose are cut and escaped, and
secrets never get here.

    {"time":"2025-01-31T12:00:00.123Z","event":"authorization","principal":"User:eve",
     "host":"10.0.0.9","listener":"SASL_SSL","api":"Produce","operation":"WRITE",
     "resource":"Topic:orders","result":"denied","rule":"no ACL matches","count":1}

The first of several equal events is logged at once; how often it was repeated within the second is
said in one more line. A principal gets a limited number of lines per second; what is beyond is
counted, and the count is logged as an event `suppressed`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Hashable
from datetime import UTC, datetime

logger = logging.getLogger("barnabas.audit")

WINDOW_MS = 1000
LINES_PER_WINDOW_MAX = 10
"""How many lines one principal gets per window."""

TRACKED_MAX = 10_000
"""How many different events, and principals, are tracked at a time; further ones are counted."""

TEXT_MAX = 256
"""Characters of a value; the rest is cut."""

Later = Callable[[int, Callable[[], None]], object]
"""Calls a function after so many milliseconds."""

Fields = dict[str, str]


class AuditLog:
    """Folds and limits events, and writes the lines."""

    def __init__(self, now_ms: Callable[[], int], later: Later) -> None:
        self._now_ms = now_ms
        self._later = later
        self._repeats: dict[Hashable, tuple[int, Fields, int]] = {}
        """Repeats that were not logged, with their fields and level, by what is equal in them."""
        self._lines: dict[str, int] = {}
        """Lines in this window, by principal."""
        self._suppressed: dict[str, int] = {}
        """Events in this window that exceeded the limit, by principal."""
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
        if not self._is_new(principal, key, level):
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
        """Record a login or a change of ACLs, credentials, tokens, quotas or configs."""
        fields = {"event": event, "principal": principal, "host": host, "listener": listener}
        fields |= details
        key = tuple(fields.items())
        if self._is_new(principal, key, logging.INFO):
            self._repeats[key] = (0, fields, logging.INFO)
            self._write(fields, 1, logging.INFO)

    def flush(self) -> None:
        """End the window: log the repeats and what was suppressed."""
        self._window_open = False
        repeats, self._repeats = self._repeats, {}
        suppressed, self._suppressed = self._suppressed, {}
        self._lines = {}
        for count, fields, level in repeats.values():
            if count:
                self._write(fields, count, level)
        for principal, count in suppressed.items():
            self._write({"event": "suppressed", "principal": principal}, count, logging.INFO)

    def _is_new(self, principal: str, key: Hashable, level: int) -> bool:
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
        lines = self._lines.get(principal, 0)
        if lines >= LINES_PER_WINDOW_MAX or len(self._repeats) >= TRACKED_MAX:
            if principal not in self._suppressed and len(self._suppressed) >= TRACKED_MAX:
                principal = "(others)"
            self._suppressed[principal] = self._suppressed.get(principal, 0) + 1
            return False
        self._lines[principal] = lines + 1
        return True

    def _write(self, fields: Fields, count: int, level: int) -> None:
        at = datetime.fromtimestamp(self._now_ms() / 1000, UTC)
        line: dict[str, object] = {"time": at.isoformat(timespec="milliseconds")[:-6] + "Z"}
        line |= {name: _cut(value) for name, value in fields.items()}
        line["count"] = count
        logger.log(level, "%s", json.dumps(line, separators=(",", ":")))


def _cut(value: str) -> str:
    return value if len(value) <= TEXT_MAX else value[:TEXT_MAX] + "…"
