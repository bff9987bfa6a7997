"""The log lines of a broker's own process: on standard error and, if wished, in files.

    output = LogOutput(sys.stderr, "INFO")       # at once, for what start-up has to say
    output.use_format("json")
    output.use_files("/var/log/barnabas", bytes_max=..., backups=...)
    output.broker_id = 1                         # once it is known
    ...
    output.close()                               # also after a crash

If the process has handlers already, as in a test, those are used instead.
"""

from __future__ import annotations

import logging
from typing import TextIO

from barnabas.logging.formats import PLAIN, PlainFormatter, file_formatter_of, formatter_of
from barnabas.logging.loggers import FILES
from barnabas.logging.queued_handler import QueuedHandler
from barnabas.logging.sinks import FileSink, StreamSink


class LogOutput:
    """The handlers of a process that runs one broker."""

    def __init__(self, stream: TextIO, level: str, root: logging.Logger | None = None) -> None:
        """Write lines from a level on to a stream; `root` is the process's root logger."""
        self._root = root or logging.getLogger()
        self._handlers: list[QueuedHandler] = []
        self._stream: QueuedHandler | None = None
        self._format = PLAIN
        self.broker_id: int | None = None
        """The id of the broker whose lines these are, once it is known."""
        if not self._root.handlers:
            self._stream = QueuedHandler(StreamSink(stream), PlainFormatter())
            self._stream.addFilter(self._is_shown)
            self._add(self._stream)
            self._root.setLevel(level)

    def _is_shown(self, record: logging.LogRecord) -> bool:
        """Return whether a line is for the stream.

        Two lines for each partition that is created or loaded are for files and machines, and for
        people who want to see everything.
        """
        if self._format != PLAIN or self._root.isEnabledFor(logging.DEBUG):
            return True
        fields = getattr(record, "fields", {})
        match getattr(record, "event", ""):
            case "leader.elected":
                return fields.get("cause") != "first"
            case "role.leads" | "role.follows":
                return bool(fields.get("previous_epoch", 0) >= 0)
        return True

    def use_format(self, name: str) -> None:
        """Write the following lines in a format of `barnabas.log.format`."""
        self._format = name
        if self._stream is not None:
            self._stream.setFormatter(formatter_of(name, lambda: self.broker_id))

    def use_files(self, directory: str, *, bytes_max: int, backups: int) -> None:
        """Write the following lines also to Kafka's set of files; raise OSError if that fails."""
        sink = FileSink(directory, bytes_max, backups)
        try:
            sink.open(FILES)
        except OSError:
            sink.close()
            raise
        formatter = file_formatter_of(self._format, lambda: self.broker_id)
        self._add(QueuedHandler(sink, formatter))

    def close(self) -> None:
        """Write what waits, and remove the handlers."""
        for handler in self._handlers:
            handler.close()
            self._root.removeHandler(handler)
        self._handlers.clear()

    def _add(self, handler: QueuedHandler) -> None:
        self._handlers.append(handler)
        self._root.addHandler(handler)
