"""A running pipeline: updates on one thread, watched by another that asks brokers for log ends.

`once` runs one update. Otherwise the next one begins as soon as there are records that the last one
has not read. `stop` ends the queries of an update such that the next run can continue: batches in
progress are repeated.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.pipeline.checking import stored_positions
from barnabas.pipeline.engine import Engine
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.explaining import explain
from barnabas.pipeline.progress import FlowReport, Progress, flow_state
from barnabas.pipeline.sketch import Sketch
from barnabas.pipeline.spec import Spec
from barnabas.pipeline.updates import Refresh, update
from barnabas.spark.cluster import Cluster
from barnabas.spark.options import parse_source

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener

LOOK_S = 1.0
"""How often brokers are asked for log ends."""

REPORTS_S = 3.0
"""How long the final reports of queries may take."""

STOP_S = 5.0
"""How long an update may take to end when it is stopped; then it ends with Spark."""


class Run:
    """A running pipeline on an engine that is started."""

    def __init__(
        self, engine: Engine, spec: Spec, sketch: Sketch, *, continuous: bool, refresh: Refresh
    ) -> None:
        self._engine = engine
        self._spec = spec
        self._continuous = continuous
        self._refresh = refresh
        self._lock = threading.Condition()
        self._progress = Progress(_now_ms())
        if not refresh.names and not refresh.everything:
            for flow in sketch.flows:
                positions = stored_positions(spec, sketch, flow)
                if positions is not None:
                    self._progress.begin(flow.name, positions.offsets)
        self._watch = _Watch(sketch)
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._failure: BaseException | None = None
        self._streams: set[str] = set()
        self._batches: set[str] = set()
        self._terminated = 0
        self._done: dict[TopicPartition, int] = {}
        self.updates = 0
        self._worker = threading.Thread(target=self._work, name="pipeline-updates", daemon=True)
        self._watcher = threading.Thread(target=self._look_on, name="pipeline-ends", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._look()
        self._watcher.start()
        self._worker.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end, and return whether it was reached; raise the failure of the update."""
        if not self._ended.wait(timeout_s):
            return False
        if self._failure is not None:
            raise self._failure
        return True

    def stop(self) -> None:
        """Stop the queries and wait for the update to end."""
        self._stopped.set()
        # A signal to the process group may have ended Spark, which would not respond then.
        asking = threading.Thread(target=self._stop_queries, daemon=True)
        asking.start()
        asking.join(STOP_S)
        self._watcher.join(LOOK_S)
        if not self._watcher.is_alive():  # else it waits for unresponsive brokers
            self._watch.close()

    def flows(self) -> list[FlowReport]:
        """Return the state of all flows."""
        with self._lock:
            return self._progress.flows(_now_ms())

    def _stop_queries(self) -> None:
        with suppress(Exception):  # if Spark is gone, so are its queries
            while not self._ended.wait(0.2):
                for query in self._engine.session.streams.active:
                    query.stop()

    def _work(self) -> None:
        listener = _listener(self._report, self._query_ended)
        streams = self._engine.session.streams
        try:
            streams.addListener(listener)
            self._update(self._refresh)
            while self._continuous and self._wait_for_more():
                self._update(Refresh())
        except BarnabasError as failure:
            if not self._stopped.is_set():
                self._failure = failure
        except Exception as failure:  # noqa: BLE001  # raised again by `wait`
            if not self._stopped.is_set():
                self._failure = PipelineError(explain(str(failure)))
        finally:
            with suppress(Exception):  # the session may be gone already
                streams.removeListener(listener)
            self._ended.set()

    def _update(self, refresh: Refresh) -> None:
        with self._lock:
            before = dict(self._progress.now)
            self._streams.clear()
            self._terminated = 0
        try:
            update(self._engine.session, self._spec, self._event, refresh=refresh)
        finally:
            self._wait_for_reports()
        with self._lock:
            self._progress.done(before)
            self.updates += 1
            self._done = before

    def _wait_for_reports(self) -> None:
        """Wait until the last reports of all queries have arrived, after the update's end."""
        with self._lock:
            self._lock.wait_for(lambda: self._terminated >= len(self._streams), REPORTS_S)

    def _wait_for_more(self) -> bool:
        """Wait until there is more to read than at the last update; False: stopped."""
        while not self._stopped.wait(0.1):
            with self._lock:
                if not self._watch.knows_sources or self._progress.has_more(self._done):
                    return True
        return False

    def _event(self, text: str) -> None:
        found = flow_state(text)
        with self._lock:
            self._progress.event(text)
            if found is None:
                return
            name, state = found
            if state == "planning":  # only flows that are not streams are planned
                self._batches.add(name)
            elif state == "starting" and name not in self._batches:
                self._streams.add(name)

    def _report(self, report: Mapping[str, Any]) -> None:
        with self._lock:
            self._progress.report(report, _now_ms())

    def _query_ended(self) -> None:
        with self._lock:
            self._terminated += 1
            self._lock.notify_all()

    def _look_on(self) -> None:
        while not self._stopped.wait(LOOK_S) and not self._ended.is_set():
            self._look()

    def _look(self) -> None:
        ends = self._watch.ends()
        with self._lock:
            self._progress.ends(ends, _now_ms())


class _Watch:
    """Asks brokers for the ends of the sources' topics; unreachable ones are left out."""

    def __init__(self, sketch: Sketch) -> None:
        self._sources = {}
        for source in sketch.sources:
            options = parse_source(source.options, streaming=source.streaming)
            self._sources[options.client["bootstrap.servers"], options.selection.text] = (
                Cluster(options.client),
                options.selection,
            )

    @property
    def knows_sources(self) -> bool:
        """Whether there is anything to ask for."""
        return bool(self._sources)

    def ends(self) -> dict[TopicPartition, int]:
        """Return the current ends."""
        found: dict[TopicPartition, int] = {}
        for cluster, selection in self._sources.values():
            try:
                found |= cluster.snapshot(selection).latest
            except BarnabasError:
                continue  # if it lasts, the query that reads there fails with more detail
        return found

    def close(self) -> None:
        """Close the connections."""
        for cluster, _ in self._sources.values():
            cluster.close()


def _listener(
    report: Callable[[Mapping[str, Any]], None], ended: Callable[[], None]
) -> StreamingQueryListener:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            report(json.loads(event.progress.json))

        def onQueryIdle(self, event: Any) -> None:
            pass

        def onQueryTerminated(self, event: Any) -> None:
            ended()

    return Listener()


def _now_ms() -> float:
    return time.monotonic() * 1000
