"""What the streams of a Spark session have read, under the names of Kafka's consumers.

    metrics = stream_metrics(spark)          # from now on, of all streams of this session
    ...
    metrics.metrics()["clicks"]["consumer-fetch-manager-metrics"]["records-lag-max"]

A Python data source cannot add metrics to Spark's progress reports, so these are made from what
Spark reports after each batch: the rows of a source, its position, and the ends of the logs. The
figures of a query that has ended stay as they were; one of the same name continues them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.spark.source_offset import SourceOffset, parse_source_offset, ranges_between

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUP = "consumer-fetch-manager-metrics"
STREAMS_MAX = 1000
"""How many queries are known; the oldest is forgotten first."""


class _Stream:
    """One query: what it has read of our sources since its first report."""

    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.rows = 0
        self.batches = 0
        self.lags: dict[TopicPartition, int] = {}
        self.topics: dict[str, int] = {}
        """Offsets that were read, by topic."""


class StreamMetrics:
    """The streams of one session, by the name of their query, or its id if it has none."""

    def __init__(self) -> None:
        self._streams: dict[str, _Stream] = {}
        self._lock = threading.Lock()
        """Spark reports on a thread of its own."""

    def report(self, progress: Mapping[str, Any], now_s: float) -> None:
        """Record Spark's report of a batch; sources that are not ours are left out."""
        name = str(progress.get("name") or progress.get("id"))
        batch_s = float(progress.get("batchDuration") or 0) / 1000
        for source in progress.get("sources", ()):
            until = _position(source.get("endOffset"))
            if until is None:
                continue
            ranges = ranges_between(_position(source.get("startOffset")), until)
            latest = _position(source.get("latestOffset"))
            ends = latest.offsets if latest is not None else {}
            with self._lock:
                stream = self._stream(name, now_s - batch_s)
                stream.batches += 1
                stream.rows += int(source.get("numInputRows") or 0)
                for each in ranges:
                    read = stream.topics.get(each.topic, 0) + each.until - each.start
                    stream.topics[each.topic] = read
                    partition = TopicPartition(each.topic, each.partition)
                    stream.lags[partition] = max(0, ends.get(partition, each.until) - each.until)

    def _stream(self, name: str, began_s: float) -> _Stream:
        stream = self._streams.get(name)
        if stream is None:
            if len(self._streams) >= STREAMS_MAX:
                del self._streams[next(iter(self._streams))]
            stream = self._streams[name] = _Stream(began_s)
        return stream

    def metrics(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return groups of metrics by query, those of each topic and partition included."""
        return self.metrics_at(time.monotonic())

    def metrics_at(self, now_s: float) -> dict[str, dict[str, dict[str, float]]]:
        """Return the metrics at a time of the monotonic clock."""
        with self._lock:
            return {name: _groups(stream, now_s) for name, stream in self._streams.items()}


def stream_metrics(spark: SparkSession) -> StreamMetrics:
    """Return the metrics of a session's streams, which Spark reports from now on."""
    from pyspark.sql.streaming.listener import StreamingQueryListener

    metrics = StreamMetrics()

    class Listener(StreamingQueryListener):
        def onQueryStarted(self, event: Any) -> None:
            pass

        def onQueryProgress(self, event: Any) -> None:
            metrics.report(json.loads(event.progress.json), time.monotonic())

        def onQueryIdle(self, event: Any) -> None:
            pass

        def onQueryTerminated(self, event: Any) -> None:
            pass

    spark.streams.addListener(Listener())
    return metrics


def _groups(stream: _Stream, now_s: float) -> dict[str, dict[str, float]]:
    seconds = max(now_s - stream.began_s, 1e-9)
    lags = stream.lags.values()
    groups: dict[str, dict[str, float]] = {
        GROUP: {
            "records-consumed-total": stream.rows,
            "records-consumed-rate": stream.rows / seconds,
            "records-per-request-avg": stream.rows / stream.batches,
            "fetch-total": stream.batches,
            "fetch-rate": stream.batches / seconds,
            "records-lag": sum(lags),
            "records-lag-max": max(lags, default=0),
            "records-lag-avg": sum(lags) / len(lags) if lags else 0.0,
            "records-lag-min": min(lags, default=0),
        }
    }
    for topic, read in stream.topics.items():
        groups[f"{GROUP}.{topic}"] = {
            "offsets-consumed-total": read,
            "offsets-consumed-rate": read / seconds,
        }
    for partition, lag in stream.lags.items():
        # A topic may have the name of another one's partition.
        groups.setdefault(f"{GROUP}.{partition}", {})["records-lag"] = lag
    return groups


def _position(reported: Any) -> SourceOffset | None:
    """Return a position of our source; None for another's, or before the first batch."""
    try:
        stored = json.loads(reported) if isinstance(reported, str) else reported
        return parse_source_offset(stored) if isinstance(stored, dict) else None
    except (ValueError, BarnabasError):
        return None
