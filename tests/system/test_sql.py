"""`barnabas sql --engine spark` gives the rows that the local engine gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.admin import NewTopic
from barnabas.cli.main import main
from barnabas.sql.errors import SqlError
from barnabas.sql.spark_engine import SparkEngine

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")
pytest.importorskip("duckdb", reason="pip install 'barnabas[sql]'")

pytestmark = [
    pytest.mark.system,
    pytest.mark.xdist_group("spark"),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default"),  # what PySpark warns of is its own
]

TOPIC = "sql.orders-eu"


@pytest.fixture(scope="module")
def filled(bootstrap: str) -> str:
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, 3, 1), NewTopic("sql_countries", 1, 1)])
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for number in range(300):
            value = {"id": number, "country": "defr"[number % 2 * 2 :][:2], "item": {"n": [number]}}
            producer.send(
                TOPIC, json.dumps(value).encode(), key=b"k%d" % number, partition=number % 3
            )
        for code, name in (("de", "Germany"), ("fr", "France")):
            producer.send("sql_countries", json.dumps({"country": code, "name": name}).encode())
        producer.flush()
    return bootstrap


def ask(capfd: pytest.CaptureFixture[str], bootstrap: str, query: str, *words: str) -> list[object]:
    assert main(["sql", query, "--bootstrap", bootstrap, "--json", *words]) == 0
    captured = capfd.readouterr()
    assert captured.err == ""
    found: list[object] = json.loads(captured.out)
    return found


def test_both_engines_give_the_same_rows(filled: str, capfd: pytest.CaptureFixture[str]) -> None:
    query = f"""
        select name, o.partition, count(*) as n, sum(id) as total, max(o.offset) as last,
               min(o.key) as key, min(item.n[0]) as first
        from `{TOPIC}` o join sql_countries using (country)
        where id >= 10 group by name, o.partition order by 1, 2
    """
    # DuckDB counts the items of a list from 1, Spark from 0.
    local = ask(capfd, filled, query.replace("[0]", "[1]"))
    spark = ask(capfd, filled, query, "--master", "local[2]")
    assert len(local) == 6
    assert spark == local


def test_values_in_avro_and_protobuf(
    bootstrap: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("fastavro", reason="pip install 'barnabas[schemas]'")
    from tests.unit.spark.schemas import MESSAGE, ORDER, VALUE, avro, descriptors

    values = {"sql_avro": (avro(VALUE), b"no Avro"), "sql_protobuf": (MESSAGE, b"\xff")}
    with KafkaAdminClient(bootstrap_servers=bootstrap) as admin:
        admin.create_topics([NewTopic(topic, 1, 1) for topic in values])
    with KafkaProducer(bootstrap_servers=bootstrap) as producer:
        for topic, sent in values.items():
            for value in sent:
                producer.send(topic, value, partition=0)
    (tmp_path / "orders.avsc").write_text(json.dumps(ORDER))
    (tmp_path / "orders.desc").write_bytes(descriptors())
    words = [
        *("--format", "sql_avro=avro", "--schema", f"sql_avro=@{tmp_path / 'orders.avsc'}"),
        *("--format", "sql_protobuf=protobuf"),
        *("--schema", f"sql_protobuf={tmp_path / 'orders.desc'}#shop.Order"),
    ]
    query = """
        select a.offset, a.id, a.state, cast(a.price as double) as price, p.id as number,
               p.state as step, a.valueError is null as fine, p.valueError is null as well
        from sql_avro a join sql_protobuf p on a.offset = p.offset order by 1
    """
    good = {"id": 7, "state": "DONE", "price": 12.5, "number": 7, "step": "DONE"}
    expected = [
        {"offset": 0, **good, "fine": True, "well": True},
        {"offset": 1, **dict.fromkeys(good), "fine": False, "well": False},
    ]
    assert main(["sql", query, "--bootstrap", bootstrap, "--json", *words]) == 0
    local = capfd.readouterr()
    assert json.loads(local.out) == expected
    assert local.err.count("1 values of sql_") == 2
    assert ask(capfd, bootstrap, query, *words, "--master", "local[2]") == expected


def test_mistakes_are_told_without_a_java_stack(
    filled: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def refusal(query: str) -> str:
        words = ["--bootstrap", filled, "--master", "local[2]"]
        assert main(["sql", query, *words]) == 1
        captured = capfd.readouterr()
        assert captured.out == ""
        assert captured.err.count("\n") == 1
        return captured.err

    assert "topic sql_country does not exist; did you mean sql_countries?" in refusal(
        "select * from sql_country"
    )
    assert "in line 1 at column 1: selec 1" in refusal("selec 1")
    told = refusal("select\n nam from sql_countries")
    assert "`nam` cannot be resolved" in told
    assert "in line 2 at column 2: nam from sql_countries" in told


def test_a_master_that_is_none(filled: str) -> None:
    with pytest.raises(SqlError, match="Spark did not start"):
        SparkEngine({}, "nonsense")
