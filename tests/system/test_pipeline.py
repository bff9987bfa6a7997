"""Pipelines on a real broker and a real Spark: what goes in comes out once, or is a dead letter.

One JVM for the projects, which run by the same calls as `barnabas pipeline`, and one for the demo,
which runs by its command.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.system.standalone import hear_interrupts

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")
pytest.importorskip("grpc", reason="pip install 'barnabas[spark]'")

import pyarrow.parquet

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from barnabas.admin import NewTopic
from barnabas.pipeline.checking import check
from barnabas.pipeline.demo.demo import CONFIGURATION
from barnabas.pipeline.engine import Engine
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.progress import FlowReport
from barnabas.pipeline.run import Run
from barnabas.pipeline.sketch import sketch
from barnabas.pipeline.spec import read_spec
from barnabas.pipeline.templates import Project
from barnabas.pipeline.updates import Refresh, update

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default"),  # what PySpark warns of is its own
]

NUMBERS = itertools.count()
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
PAGES = ("/", "/cart", "/search")
BAD = (b"{oops", b'{"took_ms": "much"}', b"", b"[1]")
RUN_S = 400


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    configuration = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        **CONFIGURATION,
    }
    running = Engine("local[2]", configuration, tmp_path_factory.mktemp("spark") / "spark.log")
    running.start()
    yield running
    running.stop()


class Shop:
    """A project, its topics, and all that was sent to it."""

    def __init__(self, directory: Path, bootstrap: str, **options: Any) -> None:
        number = next(NUMBERS)
        self.project = Project(
            directory, bootstrap, source=f"clicks-{number}", target=f"counts-{number}", **options
        )
        self.project.write()
        self.bootstrap = bootstrap
        self.counts: Counter[tuple[datetime, str]] = Counter()
        self.bad: list[tuple[bytes | None, bytes]] = []
        with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
            admin.create_topics(
                [
                    NewTopic(topic, 2 if topic == self.project.source else 1, 1)
                    for topic in self.project.topics
                ]
            )

    def send(self, first_minute: int, minutes: int, bad: int = 0) -> None:
        """Send clicks of some minutes, and some records that cannot be read."""
        with KafkaProducer(bootstrap_servers=self.bootstrap) as producer:
            for number in range(minutes * 20):
                at = NOON + timedelta(minutes=first_minute, seconds=number * 3)
                page = PAGES[number % len(PAGES)]
                click = {"user": "u", "page": page, "at": _stamp(at), "took_ms": number}
                value = json.dumps(click).encode()
                producer.send(self.project.source, value, key=b"u", partition=number % 2)
                self.counts[at.replace(second=0), page] += 1
            for number in range(bad):
                key, value = (None, b"k")[number % 2], BAD[number % len(BAD)]
                producer.send(self.project.source, value, key=key, partition=number % 2)
                self.bad.append((key, value))
            producer.send(self.project.source, None, key=b"gone", partition=0)  # no click at all

    def run(self, engine: Engine, refresh: Refresh | None = None) -> list[FlowReport]:
        """Run once; return how it went."""
        spec = read_spec(self.project.directory)
        found = sketch(spec)
        assert check(spec, found) == []
        run = Run(engine, spec, found, continuous=False, refresh=refresh or Refresh())
        run.start()
        try:
            assert run.wait(RUN_S)
        finally:
            run.stop()
        return run.flows()

    def expected(self, closed_until: datetime) -> list[tuple[str, str, int]]:
        """Return the windows that are closed, page by page."""
        return sorted(
            (_stamp(start), page, clicks)
            for (start, page), clicks in self.counts.items()
            if start + timedelta(minutes=1) <= closed_until
        )

    def in_topic(self) -> list[tuple[str, str, int]]:
        rows = []
        for record in consumed(self.bootstrap, self.project.target):
            count = json.loads(record.value)
            assert record.key.decode() == count["page"]
            rows.append((count["window_start"], count["page"], count["clicks"]))
        return sorted(rows)

    def in_files(self) -> list[tuple[str, str, int]]:
        table = pyarrow.parquet.read_table(self.project.directory / "files" / self.project.target)
        return sorted(
            (_stamp(row["window_start"].replace(tzinfo=UTC)), row["page"], row["clicks"])
            for row in table.to_pylist()
        )

    def dead_letters(self) -> list[tuple[bytes | None, bytes]]:
        """Return the dead letters; each must say what it was and why."""
        found = []
        for record in consumed(self.bootstrap, self.project.dead_letters):
            headers = dict(record.headers)
            assert headers["error"]
            assert headers["source.topic"].decode() == self.project.source
            original = at(
                self.bootstrap,
                TopicPartition(self.project.source, int(headers["source.partition"])),
                int(headers["source.offset"]),
            )
            assert (original.key, original.value) == (record.key, record.value)
            found.append((record.key, record.value))
        return found


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def consumed(bootstrap: str, topic: str) -> list[Any]:
    """Return all committed records of a topic of one partition."""
    place = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([place])[place]
        found: list[Any] = []
        while consumer.position(place) < end:
            for records in consumer.poll(timeout_ms=100).values():
                found += records
        return found


def at(bootstrap: str, place: TopicPartition, offset: int) -> Any:
    """Return one record."""
    with KafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([place])
        consumer.seek(place, offset)
        while True:
            for records in consumer.poll(timeout_ms=100).values():
                return records[0]


def test_a_project_counts_every_click_once_over_two_runs(
    engine: Engine, bootstrap: str, tmp_path: Path
) -> None:
    shop = Shop(tmp_path, bootstrap)
    update(engine.session, read_spec(tmp_path), lambda text: None, dry=True)
    assert not (tmp_path / "files").exists()  # a dry run moves nothing

    shop.send(0, 3, bad=5)
    flows = {flow.name: flow for flow in shop.run(engine)}
    assert set(flows) == {"page_counts_to_topic", "page_counts_to_files", "bad_clicks"}
    assert all(flow.rows == 60 + 5 + 1 and flow.lag == 0 for flow in flows.values())
    assert (flows["page_counts_to_topic"].state_rows or 0) > 0
    # The last click is at 12:02:57, and windows wait for ten seconds.
    closed = NOON + timedelta(minutes=2)
    assert shop.in_topic() == shop.in_files() == shop.expected(closed)
    assert Counter(shop.dead_letters()) == Counter(shop.bad)

    shop.send(3, 2, bad=3)
    shop.run(engine)
    closed = NOON + timedelta(minutes=4)
    assert shop.in_topic() == shop.in_files() == shop.expected(closed)
    assert Counter(shop.dead_letters()) == Counter(shop.bad)

    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        for flow in flows:
            offsets = admin.list_consumer_group_offsets(f"{shop.project.name}.{flow}")
            assert sum(each.offset for each in offsets.values()) == 100 + 8 + 2


def test_a_project_in_sql_does_the_same(engine: Engine, bootstrap: str, tmp_path: Path) -> None:
    shop = Shop(tmp_path, bootstrap, language="sql")
    shop.send(0, 3, bad=5)
    shop.run(engine)
    assert shop.in_topic() == shop.in_files() == shop.expected(NOON + timedelta(minutes=2))
    assert Counter(shop.dead_letters()) == Counter(shop.bad)


def test_a_record_that_cannot_be_read_ends_the_run_where_asked(
    engine: Engine, bootstrap: str, tmp_path: Path
) -> None:
    shop = Shop(tmp_path, bootstrap, bad_records="fail")
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text(spec.read_text() + '  spark.sql.pipelines.maxFlowRetryAttempts: "0"\n')
    shop.send(0, 1, bad=1)
    with pytest.raises(PipelineError) as failure:
        shop.run(engine)
    said = str(failure.value)
    assert re.search(rf"cannot read offset 10 of {shop.project.source}-0: ", said), said
    assert "\n" not in said
    assert "org.apache" not in said
    assert shop.in_topic() == []


def test_what_spark_finds_wrong_is_told_in_a_line(
    engine: Engine, bootstrap: str, tmp_path: Path
) -> None:
    shop = Shop(tmp_path, bootstrap)
    path = tmp_path / "transformations" / "clicks.py"
    path.write_text(path.read_text().replace('F.window("at"', 'F.window("when"'))
    with pytest.raises(PipelineError) as failure:
        update(engine.session, read_spec(tmp_path), lambda text: None, dry=True)
    said = str(failure.value)
    assert "`when` cannot be resolved" in said
    assert "page_counts_to" in said
    assert "\n" not in said
    assert "org.apache" not in said
    assert shop.in_topic() == []


def test_the_demo_shows_counts_and_ends_on_ctrl_c(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [
            *(sys.executable, "-m", "barnabas.cli", "demo", "--port", "0", "--rate", "40"),
            *("--data-dir", str(tmp_path), "--language", "sql"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=hear_interrupts,
    )
    killer = threading.Timer(RUN_S, demo.kill)
    killer.start()
    try:
        assert demo.stdout is not None
        said = []
        windows: list[int] = []
        for line in demo.stdout:
            said.append(line)
            found = re.match(r"window \d\d:\d\d:\d\d: (\d+) clicks: ", line)
            if found is not None:
                windows.append(int(found[1]))
            if len(windows) == 3:
                break
        demo.send_signal(signal.SIGINT)
        rest = demo.stdout.read()
        assert demo.wait() == 130, "".join(said) + rest
    finally:
        killer.cancel()
        demo.kill()
        demo.wait()
        demo.stdout.close()
    assert re.match(r"console on http://127\.0\.0\.1:\d+/", said[0]), said
    assert re.match(r"broker on 127\.0\.0\.1:\d+", said[1]), said
    # A whole window has five seconds of forty clicks, one in fifty of which cannot be read.
    assert any(clicks == pytest.approx(196, abs=40) for clicks in windows), said
    assert re.search(r"^stopped; [\d,]+ clicks sent,", rest, re.M), rest


def test_the_demo_says_what_to_install_and_ends_by_itself(tmp_path: Path) -> None:
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "barnabas.cli", "demo", "--port", "0"),
            *("--data-dir", str(tmp_path), "--seconds", "3"),
        ],
        env={**os.environ, "JAVA_HOME": str(tmp_path)},
        text=True,
        capture_output=True,
        timeout=RUN_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"no pipeline: JAVA_HOME={tmp_path}: has no bin/java; Spark needs Java 17" in ran.stdout
    assert re.search(r"^stopped; [1-9]\d* clicks sent,", ran.stdout, re.M), ran.stdout
    assert ran.stderr == ""
