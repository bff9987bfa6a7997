"""The pages about SQL and Spark: what they show can be typed, and answers as they show it.

Numbers differ, as the records do; names, columns and the form of each answer are compared.
"""

from __future__ import annotations

import ast
import json
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.system.paging import blocks, form, typed
from tools.processes import RunningBroker, start_barnabas

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from barnabas.admin import NewTopic
from barnabas.cli.main import main

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")
pytest.importorskip("duckdb", reason="pip install 'barnabas[sql]'")

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default"),  # what PySpark warns of is its own
]

ORDERS = 1200
COUNTRIES = {"de": "Germany", "fr": "France", "it": "Italy"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages") / "data"


@pytest.fixture(scope="module")
def running(data: Path) -> Iterator[RunningBroker]:
    """A broker with the topics of the pages."""
    broker = start_barnabas(data)
    fill(broker.bootstrap)
    yield broker
    broker.stop()


def fill(bootstrap: str) -> None:
    topics = {"orders": 3, "countries": 1, "web.clicks": 1}
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(name, count, 1) for name, count in topics.items()])
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(ORDERS):
            # Germany buys more than France, and that more than Italy.
            country = "dededefrfrit"[number % 6 * 2 :][:2]
            item = {"sku": f"s{number % 50}", "n": number // 6 % 3 + 1}
            price = 1.5 + number // 6 % 9
            order = {"id": number, "country": country, "price": price, "item": item}
            producer.send(
                "orders", json.dumps(order).encode(), key=country.encode(), partition=number % 3
            )
        for code, name in COUNTRIES.items():
            producer.send("countries", json.dumps({"country": code, "name": name}).encode())
        for number in range(20):
            click = {"user": "ann" if number % 3 else "bob", "page": "/"}
            producer.send("web.clicks", json.dumps(click).encode())


def test_the_commands_about_sql(
    running: RunningBroker,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", running.bootstrap)
    ran = 0
    for block in blocks("sql.md", "console"):
        for line, shown in typed(block):
            words = shlex.split(line)
            if words[0] == "pip":
                continue
            assert main(words[1:]) == 0, capfd.readouterr().err
            said = capfd.readouterr()
            assert form(said.out + said.err) == form(shown), line
            ran += 1
    assert ran == 7
    assert [path.name for path in tmp_path.iterdir()] == ["s7.parquet"]


class Page:
    """Runs the programs of a page, one after the other, in a namespace that they share."""

    def __init__(self, page: str, replaced: dict[str, str], names: dict[str, Any]) -> None:
        self._replaced = replaced
        self.names = names
        self.programs = blocks(page, "python")

    def run(self, program: str) -> tuple[str, Any]:
        """Return what a program prints, and what its last line is if that is a table."""
        for old, new in self._replaced.items():
            program = program.replace(old, new)
        tree = ast.parse(program)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        printed, value = StringIO(), None
        with redirect_stdout(printed):
            exec(compile(tree, "page", "exec"), self.names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "page", "eval"), self.names)
        return printed.getvalue(), value


def test_the_programs_about_topics(
    spark: SparkSession, running: RunningBroker, worker_code: Path, tmp_path: Path
) -> None:
    import pyarrow.parquet

    with KafkaAdminClient(bootstrap_servers=running.bootstrap) as admin:
        admin.create_topics([NewTopic("copies", 1, 1)])
    places = {name: str(tmp_path / name) for name in ("orders.parquet", "orders.checkpoint")}
    where = {"kafka.bootstrap.servers": running.bootstrap, "subscribe": "orders"}
    names: dict[str, Any] = {"spark": spark, "where": where}
    page = Page("spark.md", {"127.0.0.1:9092": running.bootstrap, **places}, names)
    batch, stream, columns, measured, typed, code, transformed, read, write = page.programs

    printed, _ = page.run(batch)
    assert {row.split("|")[2].strip() for row in printed.splitlines()[3:-2]} == {
        *("600", "400", "200")
    }
    page.run(stream)
    assert "stream_metrics(spark)" in measured  # run by tests/system/test_spark.py
    rows = pyarrow.parquet.read_table(tmp_path / "orders.parquet").to_pylist()
    assert sorted(json.loads(row["value"])["id"] for row in rows) == list(range(ORDERS))
    _, frame = page.run(columns)
    assert frame.columns == ["key", "offset"]
    assert frame.count() == ORDERS
    printed, _ = page.run(typed)
    assert len(printed.splitlines()) > 8
    (worker_code / "shop.py").write_text(code)
    _, frame = page.run(transformed)
    assert sorted({row["size"] for row in frame.collect()})[0] > 50
    page.run(read)
    italian = names["prices"].where("country = 'it'").collect()
    assert sorted(row["price"] for row in italian) == sorted(
        1.5 + number // 6 % 9 for number in range(5, ORDERS, 6)
    )
    names["frame"] = spark.sql("SELECT cast(id AS STRING) AS value FROM range(5)")
    page.run(write)
    assert sorted(values(running.bootstrap, "copies")) == [b"0", b"1", b"2", b"3", b"4"]


def test_the_programs_about_log_files(
    spark: SparkSession, running: RunningBroker, data: Path, tmp_path: Path
) -> None:
    with KafkaAdminClient(bootstrap_servers=running.bootstrap) as admin:
        admin.create_topics([NewTopic("countries-again", 1, 1)])
    damaged = tmp_path / "damaged" / "orders-0"
    shutil.copytree(data / "orders-0", damaged)
    [log] = damaged.glob("*.log")
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    replaced = {
        '"data"': repr(str(data)),
        '"damaged"': repr(str(damaged.parent)),
        "127.0.0.1:9092": running.bootstrap,
    }
    page = Page("log-files-as-tables.md", replaced, {"spark": spark})
    count, report, back = page.programs
    shown = blocks("log-files-as-tables.md", "text")[0]
    printed, _ = page.run(count)
    present = [line for line in form(printed) if "copies" not in line and "again" not in line]
    assert present == form(shown)
    printed, _ = page.run(report)
    assert f"{log}|0 " in printed.replace(" |", "|")
    page.run(back)
    found = [json.loads(value)["name"] for value in values(running.bootstrap, "countries-again")]
    assert sorted(found) == sorted(COUNTRIES.values())


def values(bootstrap: str, topic: str) -> list[bytes]:
    place = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([place])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([place])[place]
        found: list[bytes] = []
        deadline_s = time.monotonic() + 300
        while consumer.position(place) < end:
            assert time.monotonic() < deadline_s
            for records in consumer.poll(timeout_ms=100).values():
                found += [record.value for record in records]
        return found
