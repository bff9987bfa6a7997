"""The newest entries of a broker, bounded, with an index by subject.

Notes of the same event, subject and cause within ten seconds are folded into one entry with a
count: a flapping follower or a denied client must not wash the rest away.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from barnabas.diary.entry import Entry
from barnabas.model.note import Note

ENTRIES_MAX = 10_000
FOLD_MS = 10_000
"""For how long after its first occurrence repeats are folded into an entry."""


class Ring:
    """The entries of one broker since it was started."""

    def __init__(self, broker_id: int = -1, size: int = ENTRIES_MAX) -> None:
        self.broker_id = broker_id
        """Of the next entries; -1 until the broker knows its id."""
        self._size = size
        self._entries: deque[Entry] = deque()
        self._by_subject: dict[str, deque[Entry]] = {}
        self._open: dict[tuple[str, str, str], Entry] = {}
        """Entries that may still be repeated, the oldest first."""
        self._number = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        """Yield the entries, the oldest first."""
        return iter(self._entries)

    def about(self, subject: str) -> list[Entry]:
        """Return the entries about a subject, the oldest first."""
        return list(self._by_subject.get(subject, ()))

    def write(self, note: Note, now_ms: int) -> Entry:
        """Add a note; return its entry, which may be one that it was folded into."""
        self._close(now_ms)
        key = note[:3]
        known = self._open.get(key)
        if known is not None:
            known.repeat(note, now_ms)
            return known
        self._number += 1
        entry = Entry(
            self._number,
            self.broker_id,
            now_ms,
            note.event,
            note.subject,
            note.cause,
            dict(note.data),
            last_ms=now_ms,
        )
        self._open[key] = entry
        self._entries.append(entry)
        self._by_subject.setdefault(note.subject, deque()).append(entry)
        if len(self._entries) > self._size:
            self._drop_oldest()
        return entry

    def _close(self, now_ms: int) -> None:
        """End the entries that were begun too long ago; a clock that was set back ends all."""
        ended = []
        for key, entry in self._open.items():
            if 0 <= now_ms - entry.at_ms < FOLD_MS:
                break
            ended.append(key)
        for key in ended:
            del self._open[key]

    def _drop_oldest(self) -> None:
        oldest = self._entries.popleft()
        of_subject = self._by_subject[oldest.subject]
        of_subject.popleft()
        if not of_subject:
            del self._by_subject[oldest.subject]
