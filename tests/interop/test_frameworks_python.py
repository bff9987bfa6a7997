"""Python's frameworks and instrumentations, each doing its job, one of its processes killed."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.interop.conftest import Compatibility
from tests.interop.framework_runs import (
    KEYS,
    TOTAL,
    Program,
    Reader,
    assert_counted_at_least_once,
    assert_counted_once,
    create_topics,
    python_program,
    run_and_kill,
    send,
)
from tools.frameworks import SOURCES

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

REQUIREMENTS = (SOURCES / "python" / "requirements.txt").read_text()


def version_of(package: str) -> str:
    """Return the version that is pinned."""
    found = re.search(rf"^{package}(?:\[.*\])?==(\S+)$", REQUIREMENTS, re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture
def topics(bootstrap: str, name: str) -> tuple[str, str]:
    """A topic to read and one to write."""
    create_topics(bootstrap, f"{name}.in", f"{name}.out")
    return f"{name}.in", f"{name}.out"


def test_quix_streams(
    bootstrap: str, topics: tuple[str, str], tmp_path: Path, compatibility: Compatibility
) -> None:
    """Count records by key in a state store, exactly-once; a process killed, another without its
    files: every record counted once, no gap in any count.
    """
    compatibility("Quix Streams", version_of("quixstreams"), "Python")

    def start(life: str) -> Program:
        log = tmp_path / f"{life}.log"
        return python_program("quix.py", log, bootstrap, "quix", *topics, tmp_path / life)

    assert_counted_once(run_and_kill(bootstrap, *topics, start))


@pytest.mark.parametrize("library", ["aiokafka", "confluent"])
def test_faststream(
    bootstrap: str,
    topics: tuple[str, str],
    tmp_path: Path,
    library: str,
    compatibility: Compatibility,
) -> None:
    """Subscribe, publish a result for each record, acknowledge; a process killed: a result for
    every record, and repeated ones only of what was not committed.
    """
    compatibility(f"FastStream on {library}", version_of("faststream"), "Python")

    def start(life: str) -> Program:
        log = tmp_path / f"{life}.log"
        return python_program("fast_stream.py", log, library, bootstrap, "faststream", *topics)

    reader = run_and_kill(bootstrap, *topics, start)
    assert_counted_at_least_once(reader)
    results = [each for values in reader.values.values() for each in values]
    assert all(each["double"] == 2 * each["id"] for each in results)


def test_faust(
    bootstrap: str, topics: tuple[str, str], tmp_path: Path, compatibility: Compatibility
) -> None:
    """Count records by key in a table with a changelog topic; a process killed: a result for every
    record. Its exactly-once repeats what the killed process had done, on Apache Kafka as well; its
    at-least-once loses records after a kill, there as well.
    """
    compatibility("Faust (faust-streaming)", version_of("faust-streaming"), "Python")

    def start(life: str) -> Program:
        log = tmp_path / f"{life}.log"
        words = (bootstrap, "faust", *topics, tmp_path / life)
        return python_program("faust_count.py", log, *words)

    assert_counted_at_least_once(run_and_kill(bootstrap, *topics, start))


def test_kombu(bootstrap: str, name: str, tmp_path: Path, compatibility: Compatibility) -> None:
    """Send tasks to a queue, take and acknowledge each; a worker killed: every task done, and
    repeated only what was not acknowledged.
    """
    compatibility("kombu's Kafka transport (Celery)", version_of("kombu"), "Python")
    results, count = f"{name}.results", 200
    create_topics(bootstrap, name, results, partitions=1)
    with python_program(
        "kombu_tasks.py", tmp_path / "send.log", "send", bootstrap, name, results, count
    ) as sender:
        assert sender.process.wait(120) == 0, sender.said()

    def start(life: str) -> Program:
        log = tmp_path / f"{life}.log"
        return python_program("kombu_tasks.py", log, "work", bootstrap, name, results, 0)

    def done() -> Counter:
        return Counter(body_id(each) for values in reader.values.values() for each in values)

    with Reader(bootstrap, results) as reader:
        with start("first") as first:
            reader.until(lambda: reader.count >= count // 10, first)
            first.kill()
        with start("second") as second:
            reader.until(lambda: len(done()) >= count, second)
        assert set(done()) == set(range(count))
        assert done().total() <= count + 1  # each is acknowledged on its own


def test_celery(bootstrap: str, name: str, tmp_path: Path, compatibility: Compatibility) -> None:
    """Send tasks to workers that acknowledge them when done; a worker killed: every task done, and
    repeated only what was not acknowledged.
    """
    compatibility("Celery", version_of("celery"), "Python")
    results, count = f"{name}.results", 200
    create_topics(bootstrap, name, results, partitions=1)
    words = (bootstrap, name, results, count)
    with python_program("celery_app.py", tmp_path / "send.log", "send", *words) as sender:
        assert sender.process.wait(120) == 0, sender.said()

    def start(life: str) -> Program:
        return python_program("celery_app.py", tmp_path / f"{life}.log", "work", *words)

    with Reader(bootstrap, results) as reader:
        with start("first") as first:
            reader.until(lambda: reader.count >= count // 10, first)
            first.kill()
        with start("second") as second:
            reader.until(lambda: len(reader.ids) >= count, second)
        assert set(reader.ids) == set(range(count))
        assert reader.count <= count + 1


def test_pathway(
    bootstrap: str, topics: tuple[str, str], tmp_path: Path, compatibility: Compatibility
) -> None:
    """Transform a topic into another with snapshots of its position; the process killed and
    started again: a result for every record, and repeated ones only since the last snapshot.
    """
    compatibility("Pathway", version_of("pathway"), "Python")

    def start(life: str) -> Program:
        log = tmp_path / f"{life}.log"
        return python_program("path_way.py", log, bootstrap, "pathway", *topics, tmp_path / "state")

    reader = run_and_kill(bootstrap, *topics, start)
    assert_counted_at_least_once(reader)
    results = [each for values in reader.values.values() for each in values]
    assert all(each["double"] == 2 * each["id"] for each in results)


def body_id(message: dict) -> int:
    """Return the id in the body of kombu's message, which is JSON in base64."""
    number: int = json.loads(base64.b64decode(message["body"]))["id"]
    return number


def test_bytewax(
    bootstrap: str, topics: tuple[str, str], tmp_path: Path, compatibility: Compatibility
) -> None:
    """Count records by key with snapshots for recovery; the process killed and started again: a
    result for every record, counts without a gap, repeated ones only since the last snapshot.
    """
    compatibility("Bytewax", version_of("bytewax"), "Python")
    recovery = tmp_path / "recovery"
    recovery.mkdir()

    def start(life: str) -> Program:
        return python_program("wax.py", tmp_path / f"{life}.log", bootstrap, *topics, recovery)

    reader = run_and_kill(bootstrap, *topics, start)
    assert_counted_at_least_once(reader)
    for values in reader.values.values():
        assert {each["seen"] for each in values} == set(range(1, TOTAL // len(reader.values) + 1))
        assert len({(each["id"], each["seen"]) for each in values}) == len(reader.ids) // 10


@pytest.mark.parametrize("library", ["kafka_python", "aiokafka", "confluent_kafka"])
def test_opentelemetry(
    bootstrap: str, name: str, tmp_path: Path, library: str, compatibility: Compatibility
) -> None:
    """Trace producer and consumer: the context travels in the headers of each record, so that
    every record's span of reading belongs to its span of sending.
    """
    package = f"opentelemetry-instrumentation-{library.replace('_', '-')}"
    compatibility(
        f"OpenTelemetry's instrumentation of {library.replace('_', '-')}",
        version_of(package),
        "Python",
    )
    count = 20
    create_topics(bootstrap, name, partitions=1)
    traced = printed(tmp_path, "traced.py", library, bootstrap, name, count)
    assert traced["values"] == list(range(count))
    spans = traced["spans"]
    (order,) = [span for span in spans if span["name"] == "order"]
    sent = {span["id"] for span in spans if span["kind"] == "PRODUCER"}
    assert len(sent) == count
    assert {span["trace"] for span in spans if span["id"] in sent} == {order["trace"]}
    read = [{span["parent"], *span["links"]} & sent for span in spans if span["kind"] == "CONSUMER"]
    assert Counter(frozenset(each) for each in read if each) == Counter(
        frozenset({each}) for each in sent
    )


def test_polars_and_pandas(
    bootstrap: str, name: str, tmp_path: Path, compatibility: Compatibility
) -> None:
    """Read a topic as Arrow tables with our consumer and group it: the counts of both libraries
    are exact.
    """
    versions = f"{version_of('polars')}, {version_of('pandas')}"
    compatibility("polars and pandas, through Arrow", versions, "Python")
    create_topics(bootstrap, name)
    send(bootstrap, name, range(TOTAL))
    counted = printed(tmp_path, "tables.py", bootstrap, name, TOTAL)
    wanted = {f"key-{number}": TOTAL // KEYS for number in range(KEYS)}
    assert counted == {"polars": wanted, "pandas": wanted}


def printed(tmp_path: Path, script: str, *arguments: object) -> dict:
    """Return the JSON that a script has printed."""
    with python_program(script, tmp_path / "printed", *arguments) as program:
        assert program.process.wait(120) == 0, program.said()
        answer: dict = json.loads(program.said().splitlines()[-1])
        return answer
