"""An entry of the diary: a note with its time, and how often it was repeated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.model.errors import InvalidValueError
from barnabas.model.note import Note

NAMES_MAX = 20
"""How many names a folded entry collects under one word."""


@dataclass(slots=True)
class Entry:
    """One decision, or several equal ones within a short time."""

    number: int
    """Counts the entries of one run of a broker."""
    broker: int
    at_ms: int
    event: str
    subject: str
    cause: str
    data: dict[str, Any]
    count: int = 1
    last_ms: int = 0
    """When it was repeated last; the time of the first one if it was not."""

    def repeat(self, note: Note, now_ms: int) -> None:
        """Fold a note into this entry: its numbers replace the last ones, its names are added."""
        self.count += 1
        self.last_ms = now_ms
        for name, value in note.data.items():
            known = self.data.get(name)
            if _are_names(known) and _are_names(value):
                value = list(dict.fromkeys([*(known or ()), *value]))[:NAMES_MAX]
            self.data[name] = value

    def encode(self) -> bytes:
        """Return the entry as the JSON that the diary's topic holds."""
        document: dict[str, Any] = {
            "at": self.at_ms,
            "broker": self.broker,
            "event": self.event,
            "subject": self.subject,
            "cause": self.cause,
        }
        if self.count > 1:
            document |= {"count": self.count, "last": self.last_ms}
        document["data"] = self.data
        return json.dumps(document, separators=(",", ":"), default=str).encode()

    @classmethod
    def decode(cls, value: bytes, number: int = 0) -> Entry:
        """Undo `encode`; raise InvalidValueError if this is not an entry."""
        try:
            document = json.loads(value)
            at_ms, data = document["at"], document["data"]
            if not isinstance(data, dict):
                raise TypeError("data must be an object")
            event, subject, cause = (document[name] for name in ("event", "subject", "cause"))
            if not all(isinstance(text, str) for text in (event, subject, cause)):
                raise TypeError("event, subject and cause must be strings")
            return cls(
                number,
                int(document["broker"]),
                int(at_ms),
                event,
                subject,
                cause,
                data,
                int(document.get("count", 1)),
                int(document.get("last", at_ms)),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as failure:
            raise InvalidValueError(f"not an entry of the diary: {failure}") from failure

    def concerns(self, client: str) -> bool:
        """Return whether it is about a client of this host, id, principal or transactional id."""
        named = {
            self.subject.removeprefix("client:").removeprefix("transaction:"),
            *(self.data.get(name) for name in ("host", "client_id", "principal", "user")),
        }
        return client in named or f"User:{client}" in named


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


def merged(entries: Mapping[bytes, Entry]) -> list[Entry]:
    """Return entries in the order of their times, given by the keys of their records.

    An entry that was repeated is written again under its key, so the last one of each key counts.
    """
    return sorted(entries.values(), key=lambda entry: (entry.last_ms, entry.broker, entry.number))
