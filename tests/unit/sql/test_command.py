"""`barnabas sql` with the local engine, against a broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.conftest import Barnabas
from tests.unit.sql.conftest import Fill

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer
from barnabas.spark import range_reader
from barnabas.sql.feed import Feed

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")


def orders(count: int = 20) -> list[bytes]:
    return [
        json.dumps(
            {"id": number, "country": "de" if number % 4 else "fr", "price": number / 2}
        ).encode()
        for number in range(count)
    ]


def answer(barnabas: Barnabas, query: str, *words: str) -> list[dict[str, object]]:
    ran = barnabas("sql", query, "--json", *words)
    assert (ran.code, ran.err) == (0, "")
    found: list[dict[str, object]] = json.loads(ran.out)
    return found


def refusal(barnabas: Barnabas, query: str, *words: str) -> str:
    ran = barnabas("sql", query, *words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.count("\n") == 1
    return ran.err.removeprefix("barnabas sql: ").strip()


def test_a_query_over_fields(barnabas: Barnabas, fill: Fill) -> None:
    topic = fill(orders())
    query = f"select country, count(*) as n, sum(price) as total from {topic} group by 1 order by 1"
    assert answer(barnabas, query) == [
        {"country": "de", "n": 15, "total": 75.0},
        {"country": "fr", "n": 5, "total": 20.0},
    ]


def test_columns_of_every_topic(barnabas: Barnabas, fill: Fill) -> None:
    topic = fill([b"text", None], headers=[("h", b"\xff")])
    rows = answer(barnabas, f"select * from {topic} order by partition")
    assert rows == [
        {
            "partition": number,
            "offset": 0,
            "timestamp": f"2023-11-14T22:1{3 + number}:20Z",
            "key": f"k{number}",
            "value": value,
            "headers": [{"key": "h", "value": {"base64": "/w=="}}],
        }
        for number, value in enumerate(["text", None])
    ]


def test_the_word_offset_and_a_name_in_backticks(barnabas: Barnabas, fill: Fill) -> None:
    topic = fill(orders(10), name="web.clicks-eu")
    query = f"""select partition, max(offset) as last from `{topic}` where offset > 1
                group by 1 order by 1"""
    assert answer(barnabas, query) == [
        {"partition": 0, "last": 4},
        {"partition": 1, "last": 4},
    ]
    assert "write it as `web.clicks`" not in refusal(barnabas, "select * from web.clicks")
    told = refusal(barnabas, "select * from web.clicks-eu")
    assert "names with dashes or dots need backticks" in told


def test_a_dotted_name_without_backticks(barnabas: Barnabas, fill: Fill) -> None:
    fill(orders(1), name="shop.orders")
    told = refusal(barnabas, "select * from shop.orders")
    assert told == "topic shop.orders: in a query write it as `shop.orders`, with backticks"


def test_a_range_of_times_ages_and_offsets(barnabas: Barnabas, fill: Fill) -> None:
    topic = fill(orders(10))
    query = f"select list(id order by id) as ids from {topic}"

    def ids(*words: str) -> object:
        return answer(barnabas, query, *words)[0]["ids"]

    assert ids("--from", "2023-11-14T22:16:20Z", "--to", "2023-11-14T22:18:20Z") == [3, 4]
    assert ids("--from", "3") == [6, 7, 8, 9]
    assert ids("--from", "earliest", "--to", "1") == [0, 1]
    assert ids("--from", "-1h") is None
    assert ids("--from", "latest") is None
    assert ids("--to", "-1h") == list(range(10))


def test_topics_are_joined_and_read_several_times(barnabas: Barnabas, fill: Fill) -> None:
    topic = fill(orders(8))
    names = fill([b'{"country": "fr", "name": "France"}', b'{"country": "de", "name": "Germany"}'])
    query = f"""
        with cheap as (select * from {topic} where price < 2)
        select name, count(*) as n, (select max(id) from {topic}) as top
        from cheap join {names} using (country)
        where id not in (select id from cheap where id = 1)
        group by all order by name
    """
    assert answer(barnabas, query) == [
        {"name": "France", "n": 1, "top": 7},
        {"name": "Germany", "n": 2, "top": 7},
    ]
    own = f"with {topic} as (select id from {topic} where id > 5) select id from {topic} order by 1"
    assert answer(barnabas, own) == [{"id": 6}, {"id": 7}]


def test_a_recursive_query_reads_a_topic_in_every_round(barnabas: Barnabas, fill: Fill) -> None:
    topic = fill([b'{"id": %d, "boss": %d}' % (number, number - 1) for number in range(1, 8)])
    query = f"""
        with recursive chain as (
            select id from {topic} where boss = 0
            union all
            select t.id from {topic} t join chain on t.boss = chain.id
        ) select count(*) as n from chain
    """
    assert answer(barnabas, query) == [{"n": 7}]


def test_a_topic_is_joined_with_a_file(barnabas: Barnabas, fill: Fill, tmp_path: Path) -> None:
    topic = fill(orders(8))
    path = tmp_path / "names.csv"
    path.write_text("country,name\nfr,France\n")
    query = f"select name, count(*) as n from {topic} join '{path}' using (country) group by 1"
    assert answer(barnabas, query) == [{"name": "France", "n": 2}]


def test_a_table_for_people(barnabas: Barnabas, fill: Fill) -> None:
    topic = fill(orders(5))
    ran = barnabas(
        "sql", f"select id, country, price, null as no from {topic} order by id", "--limit", "2"
    )
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "id  country  price  no",
        " 0  fr       0.0     -",
        " 1  de       0.5     -",
    ]
    assert "first 2 rows; --limit shows more" in ran.err


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "parquet"])
def test_an_answer_goes_to_a_file(
    barnabas: Barnabas, fill: Fill, tmp_path: Path, ending: str
) -> None:
    topic = fill(orders(150))
    path = tmp_path / f"out.{ending}"
    ran = barnabas("sql", f"select id from {topic} order by id", "--output", str(path))
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == f"150 rows to {path}\n"
    query = f"select count(*) as n, sum(id) as total from '{path}'"
    assert answer(barnabas, query)[0]["n"] == 150
    again = refusal(barnabas, f"select 1 from {topic}", "--output", str(path))
    assert "already exists; --overwrite replaces it" in again
    words = ("--output", str(path), "--overwrite", "--limit", "3")
    assert barnabas("sql", f"select id from {topic}", *words).err.startswith("3 rows to")


def test_values_that_do_not_fit_are_told(barnabas: Barnabas, fill: Fill) -> None:
    values = [b"not json", *orders(1200)]  # the sample does not reach back to the first
    topic = fill(values)
    ran = barnabas("sql", f"select count(*) as n, count(id) as ids from {topic}", "--json")
    assert json.loads(ran.out) == [{"n": 1201, "ids": 1200}]
    assert f"1 values of {topic} do not fit its columns" in ran.err
    assert "first at partition 0 offset 0: Expecting value" in ran.err


def test_formats_and_schemas_by_topic(barnabas: Barnabas, fill: Fill) -> None:
    lines = fill([b"1,one", b"2,two"])
    objects = fill([b'{"id": 1, "x": true}', b'{"id": 2}'])
    query = f"select name, {objects}.id from {lines} join {objects} using (id) order by id"
    assert answer(
        barnabas,
        query,
        *("--format", f"{lines}=csv", "--schema", f"{lines}=id INT, name STRING"),
        *("--schema", f"{objects}=id INT"),
    ) == [{"name": "one", "id": 1}, {"name": "two", "id": 2}]
    told = refusal(barnabas, f"select 1 from {lines}", "--format", "xml")
    assert told == "--format xml: must be one of auto, json, csv, avro, protobuf, string, binary"


def test_a_limit_ends_the_fetching(
    barnabas: Barnabas, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = fill([b"x"] * 60_000)
    read = []
    closes = Feed.close

    def close(feed: Feed) -> None:
        closes(feed)
        read.append(feed.records)

    monkeypatch.setattr(range_reader, "ROWS_MAX", 1000)
    monkeypatch.setattr(Feed, "close", close)
    assert len(answer(barnabas, f"select value from {topic} limit 3")) == 3
    assert len(read) == 1
    assert read[0] < 60_000


def test_aborted_records_are_left_out(
    barnabas: Barnabas, barnabas_bootstrap: str, fill: Fill
) -> None:
    topic = fill([b"plain"])
    with KafkaProducer(bootstrap_servers=barnabas_bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"aborted", partition=0)
        producer.flush()
        producer.abort_transaction()
    query = f"select value from {topic} order by offset"
    assert answer(barnabas, query) == [{"value": "plain"}]
    assert answer(barnabas, query, "--isolation", "uncommitted") == [
        {"value": "plain"},
        {"value": "aborted"},
    ]


def test_nothing_is_subscribed_to_or_committed(
    barnabas: Barnabas, barnabas_bootstrap: str, fill: Fill
) -> None:
    topic = fill(orders(3))
    with KafkaAdminClient(bootstrap_servers=barnabas_bootstrap) as admin:
        before = admin.list_consumer_groups()
        answer(barnabas, f"select * from {topic}")
        assert admin.list_consumer_groups() == before
    with KafkaConsumer(bootstrap_servers=barnabas_bootstrap) as consumer:
        assert consumer is not None


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("selec 1", 'syntax error at or near "selec", in line 1 at column 1: selec 1'),
        ("select 1 +\n from\n where", "in line 2 at column 2: from"),
        ("drop table x", "only queries can be run: select …, with …, from …"),
        ("select 1; select 2", "must be one query, not 2"),
        ("", "must be one query, not 0"),
    ],
)
def test_a_query_that_cannot_be_read(barnabas: Barnabas, query: str, told: str) -> None:
    assert told in refusal(barnabas, query)


def test_mistakes_in_names(barnabas: Barnabas, fill: Fill) -> None:
    topic = fill(orders(3), name="payments")
    assert refusal(barnabas, "select * from payment") == (
        "topic payment does not exist; did you mean payments?"
    )
    told = refusal(barnabas, f"select offset, cuontry from {topic}")
    assert 'Referenced column "cuontry" not found' in told
    assert "in line 1 at column 16: cuontry from payments" in told
    assert "no_such_function" in refusal(barnabas, f"select no_such_function(id) from {topic}")
    told = refusal(barnabas, f"select country::int from {topic}")
    assert "Could not convert string" in told


def test_no_broker(barnabas: Barnabas) -> None:
    told = refusal(barnabas, "select * from orders", "--bootstrap", "127.0.0.1:1")
    assert "is a broker running there? start one with: barnabas start" in told


def test_misuse(barnabas: Barnabas) -> None:
    assert barnabas("sql").code == 2
    assert barnabas("sql", "select 1", "--from", "yesterday").code == 2
    assert barnabas("sql", "select 1", "--limit", "0").code == 2
    told = refusal(barnabas, "select 1", "--engine", "local", "--master", "local[2]")
    assert told == "--master local[2]: needs --engine spark"
    assert barnabas("sql", "select 1", "--master", "steam").code == 2


def test_a_master_that_is_not_there(barnabas: Barnabas) -> None:
    pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")
    told = refusal(barnabas, "select 1", "--master", "spark://127.0.0.1:1")
    assert told.startswith("--master spark://127.0.0.1:1: no Spark master listens there")
