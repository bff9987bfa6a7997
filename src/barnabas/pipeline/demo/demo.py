"""The demo: a broker, clicks that are sent to it, the pipeline that counts them, and the counts.

    clicks → topic clicks → Spark → topics page-counts and clicks-dead-letters, Parquet files

Broker and pipeline are the commands that users type, each in a process of its own. Without Spark
only the broker and the clicks run, and `lacking` says what to install.
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import shutil
import socket
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any

from barnabas.admin.topics import NewTopic
from barnabas.blocking.admin import KafkaAdminClient
from barnabas.blocking.consumer import KafkaConsumer
from barnabas.blocking.producer import KafkaProducer
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.pipeline.demo.child import Child
from barnabas.pipeline.demo.clicks import Clicks
from barnabas.pipeline.demo.windows import Window, Windows
from barnabas.pipeline.engine import missing
from barnabas.pipeline.templates import Language, Project
from barnabas.spark.session import signals_kept

WINDOW, DELAY = "5 seconds", "2 seconds"
PARTITIONS = 2
CONFIGURATION = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.pipelines.execution.maxConcurrentFlows": "2",
    "spark.sql.pipelines.maxFlowRetryAttempts": "10",
}
"""A JVM that starts faster, for few records, and timeouts for busy machines."""

CONSOLE_PACKAGES = ("h11", "jinja2", "starlette", "uvicorn")
READY_S = 120.0
_ADDRESS = re.compile(r"PLAINTEXT://([\w.\-]+:\d+)")
_TICK_S = 0.1


def has_console() -> bool:
    """Return whether the packages of the console are installed."""
    return all(find_spec(each) is not None for each in CONSOLE_PACKAGES)


def free_port(wanted: int) -> int:
    """Return a port if it is free, else 0, for any."""
    with socket.socket() as probe:
        # As the broker's listeners do: a connection of an earlier run may linger.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            return 0
    return wanted


class Demo:
    """The whole demo, from `start` to `stop`."""

    def __init__(
        self,
        data: Path,
        *,
        port: int,
        per_second: int,
        language: Language,
        random: Random,
        console_port: int | None = None,
    ) -> None:
        """`console_port` is where the broker's console listens, if the port is free."""
        self._data = data
        self._port = port
        self._console_port = console_port if has_console() else None
        self._per_second = per_second
        self._language: Language = language
        self._clicks = Clicks(random)
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._broker: Child | None = None
        self._pipeline: Child | None = None
        self._windows = Windows()
        self._lock = threading.Lock()
        self.bootstrap = ""
        self.console: str | None = None
        """The address of the broker's console, if there is one."""
        self.sent = 0
        self.lacking: str | None = missing()
        self.flows: list[dict[str, Any]] = []

    @property
    def project(self) -> Project:
        """The pipeline's project."""
        return Project(
            self._data / "demo",
            self.bootstrap,
            self._language,
            window=WINDOW,
            delay=DELAY,
            configuration=CONFIGURATION,
        )

    @property
    def failure(self) -> str | None:
        """The failure of a process, if one ended unexpectedly."""
        for child in (self._broker, self._pipeline):
            if child is not None and child.failure is not None:
                return child.failure
        return None

    @property
    def counts_seen(self) -> int:
        """How many records of the counts topic were received."""
        return self._windows.seen

    def start(self) -> None:
        """Start the broker, the clicks, and the pipeline if Spark is available."""
        words = ["start", "--data-dir", str(self._data / "broker")]
        words += ["--listen", f"127.0.0.1:{self._port}", "--log-level", "warning"]
        if self._console_port is not None:
            words += ["--console", f"127.0.0.1:{free_port(self._console_port)}"]
        with signals_kept():  # an untracked child would keep running
            self._broker = Child(words, self._data / "broker.log")
        found = _ADDRESS.search(self._broker.wait_for("is ready on", READY_S))
        assert found is not None
        self.bootstrap = found[1]
        if self._console_port is not None:
            line = self._broker.wait_for("console on ", READY_S)
            self.console = line.removeprefix("console on ")
        self._create_topics()
        self._run(self._send)
        if self.lacking is None:
            self._write_project()
            words = ["pipeline", "run", str(self.project.directory), "--master", "local[2]"]
            log = self._data / "pipeline.log"
            with signals_kept():
                self._pipeline = Child([*words, "--continuous", "--json"], log)
            self._run(self._consume)

    def stop(self) -> None:
        """Stop everything: first the readers, then the writers, then the broker."""
        self._stopped.set()
        if self._pipeline is not None:
            self._pipeline.stop()
        for thread in self._threads:
            thread.join()
        if self._broker is not None:
            self._broker.stop()

    def kill(self) -> None:
        """Kill the processes, without waiting."""
        for child in (self._pipeline, self._broker):
            if child is not None:
                child.kill()

    def windows(self) -> list[Window]:
        """Return the last windows, the newest first."""
        with self._lock:
            return self._windows.latest()

    def look(self) -> None:
        """Read the counts that the pipeline has written."""
        if self._pipeline is None:
            return
        with contextlib.suppress(queue.Empty):
            while True:
                self.flows = json.loads(self._pipeline.lines.get_nowait())["flows"]

    def _create_topics(self) -> None:
        with KafkaAdminClient(bootstrap_servers=self.bootstrap) as admin:
            for topic in self.project.topics:
                partitions = PARTITIONS if topic == self.project.source else 1
                try:
                    admin.create_topics([NewTopic(topic, partitions, 1)])
                except RequestError as failure:
                    if failure.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                        raise

    def _write_project(self) -> None:
        """Rewrite the definitions, as the port may have changed; checkpoints stay."""
        project = self.project
        shutil.rmtree(project.directory / "transformations", ignore_errors=True)
        for path in project.files():
            (project.directory / path).unlink(missing_ok=True)
        project.write()

    def _run(self, work: Any) -> None:
        thread = threading.Thread(target=work, name=f"demo{work.__name__}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _send(self) -> None:
        began_s, began_ms = time.monotonic(), time.time() * 1000
        with KafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=20) as producer:
            while True:
                due = 1 + int((time.monotonic() - began_s) * self._per_second)
                while self.sent < due:
                    # Each has the time at which it was due, so that windows have as many clicks
                    # as they should, however busy the machine is.
                    at_ms = began_ms + self.sent * 1000 / self._per_second
                    key, value = self._clicks.next(int(at_ms))
                    producer.send(self.project.source, value, key=key)
                    self.sent += 1
                if self._stopped.wait(_TICK_S):
                    return

    def _consume(self) -> None:
        with KafkaConsumer(
            bootstrap_servers=self.bootstrap, isolation_level="read_committed"
        ) as consumer:
            partition = TopicPartition(self.project.target, 0)
            consumer.assign([partition])
            consumer.seek_to_end()
            while not self._stopped.is_set():
                for records in consumer.poll(timeout_ms=200).values():
                    with self._lock:
                        for record in records:
                            self._windows.add(record.value)
