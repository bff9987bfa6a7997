"""The directories of the logs: which have failed, and what the last start recovered."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.monitoring.family import Family
from barnabas.broker.storage.logs import Logs
from barnabas.metrics.catalogue import logs as catalogue
from barnabas.metrics.metric import label_text


class LogSeries:
    """A collector over the directories of log.dirs."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs

    def collect(self) -> Iterator[Family]:
        """Yield the families; see `Collector`."""
        logs = self._logs
        offline = list(logs.offline)
        paths = sorted({*logs.paths, *offline})
        texts = {path: label_text(("logDirectory",), (path,)) for path in paths}
        yield catalogue.OFFLINE_DIRECTORIES, [("", len(offline))]
        yield (
            catalogue.DIRECTORY_OFFLINE,
            [(texts[path], 1 if path in offline else 0) for path in paths],
        )
        yield (
            catalogue.LOGS_TO_RECOVER,
            [(label_text(("dir",), (path,)), left) for path, left in logs.left_to_recover.items()],
        )
        found = {path: logs.recoveries.get(path) for path in paths}
        yield (
            catalogue.RECOVERED_LOGS,
            [(texts[path], each.logs if each else 0) for path, each in found.items()],
        )
        yield (
            catalogue.RECOVERY_SECONDS,
            [(texts[path], each.seconds if each else 0.0) for path, each in found.items()],
        )
