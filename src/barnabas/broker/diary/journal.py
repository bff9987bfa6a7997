"""Takes the notes of all parts of a broker: each becomes an entry, a log line and a count."""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.diary.catalogue import EVENTS
from barnabas.diary.entry import Entry
from barnabas.diary.log_lines import log_line
from barnabas.diary.ring import Ring
from barnabas.diary.subjects import cut
from barnabas.metrics.catalogue.diary import ENTRIES, REBALANCES
from barnabas.metrics.registry import Registry
from barnabas.model.note import Note

logger = logging.getLogger("barnabas.broker")


class Journal:
    """The diary of one broker since it was started."""

    def __init__(self, metrics: Registry, now_ms: Callable[[], int]) -> None:
        self.ring = Ring()
        self._metrics = metrics
        self._now_ms = now_ms
        self._keep: Callable[[Entry], None] | None = None

    def identify(self, broker_id: int) -> None:
        """Set the id of the broker, which it may learn from the coordination tree."""
        self.ring.broker_id = broker_id

    def keep_with(self, keep: Callable[[Entry], None]) -> None:
        """Pass each entry, new or repeated, to what keeps the diary, those so far included."""
        self._keep = keep
        for entry in self.ring:
            keep(entry)

    def note(self, note: Note) -> None:
        """Take a note: it is written, logged and counted here, and nowhere else."""
        event = EVENTS.get(note.event)
        if event is None or note.cause not in event.causes:
            logger.error("note without an entry in the catalogue: %s, %s", note.event, note.cause)
            return
        note = note._replace(data={name: _bounded(value) for name, value in note.data.items()})
        is_new = True
        if event.kept:
            entry = self.ring.write(note, self._now_ms())
            is_new = entry.count == 1
            if self._keep is not None:
                self._keep(entry)
        self._metrics.counter(ENTRIES, note.event).add()
        if note.event == "group.rebalance":
            self._metrics.counter(REBALANCES, note.cause).add()
        if event.logged and (is_new or not event.limited):
            self._log(event.logger, event.level, note)

    def _log(self, name: str, level: int, note: Note) -> None:
        log = logging.getLogger(name)
        if log.isEnabledFor(level):
            fields = {"subject": note.subject, "cause": note.cause, **note.data}
            log.log(
                level,
                "%s",
                log_line(note, self.ring.broker_id),
                extra={"event": note.event, "fields": fields},
            )


def _bounded(value: object) -> object:
    """Cut what a client may have chosen the length of."""
    return cut(value) if isinstance(value, str) else value
