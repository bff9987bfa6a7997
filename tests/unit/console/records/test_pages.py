"""The pages about records, on a real broker behind its door."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import re
from functools import partial
from html import unescape
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from tests.unit.broker.serving import TIMESTAMP, create_topic, wait_for
from tests.unit.console.records.putting import put
from tests.unit.console.site import SECURED, Site, text_of

from barnabas.console.records.asking import TopicAccess
from barnabas.console.records.browsing import Rests
from barnabas.console.records.decoding import Decoder
from barnabas.console.records.filter_evaluation import ALL
from barnabas.console.records.pages import live as live_pages
from barnabas.console.records.tailing import News, Tail
from barnabas.console.records.work import Work
from barnabas.console.session import Session
from barnabas.kernels import murmur2
from barnabas.model.visitor import Mode
from barnabas.records.builder import build_batch
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

HOSTILE = [
    b"<script>alert(1)</script>",
    b'"><img src=x onerror=alert(2)>',
    "\u202egpj.exe".encode(),
    "zero\u200bwidth\ufeff".encode(),
    b"null\0byte\x07bell\x1b[31m",
    b"\xff\xfe\xfa not UTF-8",
    b"line\r\nfeed\nX-Header: 1",
    b"{{ 7 * 7 }}{% raw %}",
    b"</textarea></pre></td>",
    b"a" * 900_000,
    b'{"deep": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b"[" * 200_000,
    b"",
]


HIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


class _Checker(HTMLParser):
    """Collects what a page must not have."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        if tag == "script":
            self.scripts += 1
            if not (names.get("src") or "").startswith("/static/"):
                self.wrong.append(f"inline script: {attrs}")
        if tag in ("style", "img", "iframe"):
            self.wrong.append(tag)
        for name, value in attrs:
            if name.startswith(("on", "hx-on")) or name == "style":
                self.wrong.append(f"{tag} {name}={value}")
            if value and re.match(r"(?i)\s*javascript:", value):
                self.wrong.append(f"{tag} {name}={value}")


def check(response: httpx.Response, status: int = 200) -> str:
    """Hold that a page has nothing of a record unescaped, and no hidden character."""
    assert response.status_code == status, (response.status_code, text_of(response.text)[:500])
    page = response.text
    checker = _Checker()
    checker.feed(page)
    assert checker.wrong == []
    hidden = HIDDEN.search(page)
    assert hidden is None, page[max(0, hidden.start() - 80) : hidden.end() + 80]
    return page


@pytest.fixture
def topic(site: Site, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^A-Za-z0-9]", "-", request.node.name)[:80]
    site.create_topic(name)
    return name


def offsets_in(page: str) -> list[int]:
    return [int(found) for found in re.findall(r'name="place" value="0:([0-9]+)"', page)]


def link(page: str, title: str) -> str:
    found = re.search(rf'<a href="([^"]*)"[^>]*>{re.escape(title)}</a>', page)
    assert found is not None, text_of(page)
    return unescape(found[1])


def confirm(site: Site, page: str) -> httpx.Response:
    """Send the form of a preview as a browser would."""
    form = re.search(
        r'<form method="post" action="([^"]*)">((?:(?!</form>).)*name="confirmed".*?)</form>',
        page,
        re.DOTALL,
    )
    assert form is not None, text_of(page)
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form[2])
    fields += re.findall(r'<textarea name="([^"]*)" hidden>\n(.*?)</textarea>', form[2], re.DOTALL)
    return site.send(unescape(form[1]), [(unescape(n), unescape(v)) for n, v in fields])


def rows_of(count: int, start: int = 0) -> list[Any]:
    return [
        (TIMESTAMP + each, f"key-{each}".encode(), json.dumps({"n": each}).encode(), ())
        for each in range(start, start + count)
    ]


def test_browses_newest_first_page_by_page(site: Site, topic: str) -> None:
    for start in range(0, 130, 10):
        put(site, topic, rows_of(10, start))
    page = check(site.get(f"/topics/{topic}/records"))
    seen = offsets_in(page)
    while "Next page" in page:
        page = check(site.get(link(page, "Next page")))
        seen += offsets_in(page)
    assert seen == list(range(129, -1, -1))


def test_browses_oldest_first_and_from_an_offset_or_a_time(site: Site, topic: str) -> None:
    for start in range(0, 130, 10):
        put(site, topic, rows_of(10, start))
    page = check(site.get(f"/topics/{topic}/records?from=oldest"))
    seen = offsets_in(page)
    while "Next page" in page:
        page = check(site.get(link(page, "Next page")))
        seen += offsets_in(page)
    assert seen == list(range(130))
    page = check(site.get(f"/topics/{topic}/records?from=offset&offset=100"))
    assert offsets_in(page) == list(range(100, 130))
    page = check(site.get(f"/topics/{topic}/records?from=time&time={TIMESTAMP + 125}"))
    # A time leads to a batch's first record that is so new.
    assert offsets_in(page) == list(range(125, 130))


@pytest.mark.parametrize(
    ("q", "expected"),
    [
        ("value.n = 17", [17]),
        ("value.n >= 128", [129, 128]),
        ("KEY-77", [77]),
        ("key = key-5 or key ~ '^key-6$'", [6, 5]),
        ("value.n < 3 and offset > 0", [2, 1]),
        (f"timestamp >= {TIMESTAMP + 128}", [129, 128]),
        (f"timestamp < {TIMESTAMP + 2}", [1, 0]),
        ("value.n in (4, 300)", [4]),
        ("nothing like this", []),
    ],
)
def test_searches(site: Site, searched: str, q: str, expected: list[int]) -> None:
    page = check(site.get(f"/topics/{searched}/records?{httpx.QueryParams(q=q)}"))
    assert offsets_in(page) == expected
    text = text_of(page)
    assert "Searched all of it" in text
    assert ("Nothing was found" in text) == (not expected)


@pytest.fixture(scope="module")
def searched(site: Site) -> str:
    site.create_topic("searched")
    for start, codec in zip(
        range(0, 130, 10), ["none", "gzip", "snappy", "lz4", "zstd"] * 3, strict=False
    ):
        put(site, "searched", rows_of(10, start), codec=codec)
    return "searched"


def test_a_search_that_finds_many_goes_on_with_its_cursor(site: Site, searched: str) -> None:
    page = check(site.get(f"/topics/{searched}/records?q=value.n%20exists&limit=20"))
    seen = offsets_in(page)
    while "Search on" in page:
        page = check(site.get(link(page, "Search on")))
        seen += offsets_in(page)
    assert seen == list(range(129, -1, -1))


def test_a_part_of_a_search_is_a_fragment(site: Site, searched: str) -> None:
    page = check(site.get(f"/topics/{searched}/records?q=value.n%20exists&limit=20"))
    part = check(site.get(link(page, "Search on") + "&have=5", **{"hx-request": "true"}))
    assert "<html" not in part
    assert len(offsets_in(part)) == 15
    stopped = site.get(link(page, "Search on") + "&stop=1", **{"hx-request": "true"})
    assert "Stopped" in check(stopped)


def test_wrong_filters_and_parameters_are_explained(site: Site, searched: str) -> None:
    for parameters, reason in [
        ({"q": "value.n ="}, "expected a value"),
        ({"q": "vlaue <script> = 3"}, "unknown field"),
        ({"from": "middle"}, "must be one of newest"),
        ({"from": "time", "time": "noon"}, "must be a time"),
        ({"from": "offset", "offset": "-5"}, "must be a whole number"),
        ({"after": "garbage"}, "damaged"),
        ({"vd": "eval"}, "must be one of auto"),
    ]:
        response = site.get(f"/topics/{searched}/records?{httpx.QueryParams(parameters)}")
        assert reason in text_of(check(response, 400)), parameters


def test_merges_partitions_by_time_and_finds_keys_where_they_hash(site: Site) -> None:
    site.create_topic("spread", 3)
    for each in range(30):
        key = b"key-%d" % each
        partition = (murmur2(key) & 0x7FFFFFFF) % 3
        put(site, "spread", [(TIMESTAMP + each, key, b"%d" % each, ())], partition)
    page = check(site.get("/topics/spread/records"))
    keys = re.findall(r">(key-[0-9]+)<", page)
    assert keys == [f"key-{each}" for each in range(29, -1, -1)]
    page = check(site.get("/topics/spread/records?from=key&key=key-7"))
    assert re.findall(r">(key-[0-9]+)<", page) == ["key-7"]
    assert "Only partition" in text_of(page)
    page = check(site.get("/topics/spread/records?partition=1"))
    assert 0 < len(re.findall(r">(key-[0-9]+)<", page)) < 30


@pytest.mark.parametrize("payload", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_payloads_are_shown_and_do_nothing(site: Site, topic: str, payload: bytes) -> None:
    name = payload.decode(errors="replace")[:1000]
    put(
        site, topic, [(TIMESTAMP, payload[:1000], payload, [(name, payload[:50_000]), ("n", None)])]
    )
    base = f"/topics/{topic}"
    check(site.get(f"{base}/records"))
    check(site.get(f"{base}/records?q={'a' if payload else 'value%20exists'}"))
    for how in ("json", "text", "hex", "msgpack", "protobuf", "cbor", "uuid", "avro", "internal"):
        check(site.get(f"{base}/0/0?vd={how}&kd={how}"))
    check(site.get(f"{base}/0/0?whole=1"))
    check(site.get(f"{base}/records/produce?of=0:0"))
    page = check(site.send(f"{base}/records/send", [*token(site, base), ("place", "0:0")]))
    check(confirm(site, page))
    raw = site.get(f"{base}/0/1/value.bin")
    assert raw.content == payload
    assert raw.headers["content-type"] == "application/octet-stream"
    assert raw.headers["content-disposition"].startswith("attachment")
    assert site.get(f"{base}/0/1/header-0.bin").content == payload[:50_000]


def token(site: Site, base: str) -> list[tuple[str, str]]:
    page = site.get(f"{base}/records/produce").text
    found = re.search(r'name="_token" value="([^"]*)"', page)
    assert found is not None
    return [("_token", found[1])]


def test_a_large_value_is_cut_and_shown_on_demand(site: Site, topic: str) -> None:
    put(site, topic, [(TIMESTAMP, None, b"x" * 900_000, ())])
    page = check(site.get(f"/topics/{topic}/0/0"))
    assert len(page) < 250_000
    assert "the first 65.5 kB of 900.0 kB" in text_of(page)
    page = check(site.get(link(page, "Show up to 1 MB")))
    assert page.count("x" * 900_000) == 1


def test_numbers_keep_their_digits(site: Site, topic: str) -> None:
    value = b'{"id": 9007199254740993, "price": 1.50, "id": 12345678901234567890}'
    put(site, topic, [(TIMESTAMP, (2**63 - 1).to_bytes(8, "big"), value, ())])
    page = unescape(check(site.get(f"/topics/{topic}/0/0?kd=int")))
    assert '"id": 9007199254740993,' in page
    assert '"price": 1.50,' in page
    assert '"id": 12345678901234567890' in page
    assert "9223372036854775807" in page


def test_what_is_not_there_is_not_found(site: Site, topic: str) -> None:
    for path in ("0/0", "5/0", "0/99999999999999999999", "0/0/value.bin"):
        check(site.get(f"/topics/{topic}/{path}"), 404)
    check(site.get("/topics/no-such-topic/records"), 404)


def test_produces_after_a_preview(site: Site, topic: str) -> None:
    base = f"/topics/{topic}"
    fields = [
        *token(site, base),
        ("target", topic),
        ("key", "zero\u200dwidth"),
        ("key_format", "text"),
        ("value", ' {"a":\n1} '),
        ("value_format", "json"),
        ("headers", "trace: 1\nempty:"),
        ("partition", ""),
    ]
    page = check(site.send(f"{base}/records/produce", fields))
    assert "Nothing has been sent yet" in text_of(page)
    check(site.get(f"{base}/0/0"), 404)
    assert "from offset 0 on" in text_of(check(confirm(site, page)))
    assert site.get(f"{base}/0/0/value.bin").content == b' {"a":\n1} '
    assert site.get(f"{base}/0/0/key.bin").content == "zero\u200dwidth".encode()
    assert site.get(f"{base}/0/0/header-0.bin").content == b"1"
    assert site.get(f"{base}/0/0/header-1.bin").content == b""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": "{", "value_format": "json"}, "value is not JSON"),
        ({"key": "zz", "key_format": "hex"}, "hexadecimal"),
        ({"headers": "no colon"}, "line 1"),
        ({"partition": "-1"}, "partition"),
    ],
)
def test_wrong_records_are_not_planned(
    site: Site, topic: str, change: dict[str, str], reason: str
) -> None:
    base = f"/topics/{topic}"
    fields = {"target": topic, "value": "x", "value_format": "text"} | change
    page = check(site.send(f"{base}/records/produce", [*token(site, base), *fields.items()]), 400)
    assert reason in text_of(page)


def test_without_the_token_nothing_is_sent(site: Site, topic: str) -> None:
    response = site.send(f"/topics/{topic}/records/produce", [("value", "x"), ("confirmed", "yes")])
    assert response.status_code == 403
    check(site.get(f"/topics/{topic}/0/0"), 404)


def test_brings_dead_letters_back(site: Site) -> None:
    site.create_topic("orders")
    site.create_topic("orders-dlt")
    letters = [
        (TIMESTAMP, b"k1", b"v1", [
            ("kafka_dlt-original-topic", b"orders"),
            ("kafka_dlt-original-partition", (0).to_bytes(4, "big")),
            ("kafka_dlt-exception-message", b"boom"),
            ("trace", b"t1"),
        ]),
        (TIMESTAMP, b"k2", b"v2", [("__connect.errors.topic", b"orders")]),
        (TIMESTAMP, b"k3", b"v3", []),
        (TIMESTAMP, b"k4", b"v4", [("__connect.errors.topic", b"gone")]),
    ]  # fmt: skip
    put(site, "orders-dlt", letters)
    base = "/topics/orders-dlt"
    fields = [*token(site, base), ("action", "back"), ("all", "yes"), ("query-q", "value exists")]
    page = check(site.send(f"{base}/records/send", fields))
    text = text_of(page)
    assert "2 records to send" in text
    assert "no header says where it came from" in text
    assert "there is no topic gone" in text
    check(confirm(site, page))
    page = check(site.get("/topics/orders/records?from=oldest"))
    assert offsets_in(page) == [0, 1]
    assert "trace: t1" in page or "trace: t2" in page
    assert "boom" not in page


def test_exports_and_imports_again(site: Site, topic: str) -> None:
    rows = [
        (TIMESTAMP, b"=1+1", b"@SUM(A1)", [("h", b"\xff")]),
        (TIMESTAMP + 1, None, None, ()),
        (TIMESTAMP + 2, b"k", "\u2028 line".encode(), ()),
    ]
    put(site, topic, rows)
    base = f"/topics/{topic}"
    lines = site.get(f"{base}/records.jsonl?from=oldest")
    assert lines.headers["content-disposition"].startswith("attachment")
    found = [json.loads(line) for line in lines.text.split("\n") if line]
    assert [each["key"] for each in found] == ["=1+1", None, "k"]
    assert found[0]["headers"] == [["h", {"base64": "/w=="}]]
    cells = site.get(f"{base}/records.csv?from=oldest").text
    assert "'=1+1" in cells
    assert "'@SUM(A1)" in cells
    parquet = site.get(f"{base}/records.parquet?from=oldest").content
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(io.BytesIO(parquet)).to_pylist()
    assert [each["value"] for each in table] == [b"@SUM(A1)", None, "\u2028 line".encode()]
    site.create_topic(f"{topic}-copy")
    copy = f"/topics/{topic}-copy"
    page = check(site.send(f"{copy}/records/import", [*token(site, copy), ("lines", lines.text)]))
    check(confirm(site, page))
    again = site.get(f"{copy}/records.jsonl?from=oldest").text
    assert [json.loads(a) | {"topic": ""} for a in again.split("\n") if a] == [
        each | {"topic": ""} for each in found
    ]


def test_wrong_lines_are_not_imported(site: Site, topic: str) -> None:
    base = f"/topics/{topic}"
    for lines, reason in [
        ("", "no record"),
        ('{"value": "a"}\n{"key": 1}', "line 2"),
        ('{"value": "\\ud800"}', "line 1"),
        ("[" * 100_000, "line 1"),
    ]:
        fields = [*token(site, base), ("lines", lines)]
        assert reason in text_of(check(site.send(f"{base}/records/import", fields), 400))


def test_schemas_of_the_session_decode_frames(site: Site, topic: str) -> None:
    put(site, topic, [(TIMESTAMP, None, b"\0\0\0\0\x07\x06abc", ())])
    base = f"/topics/{topic}"
    schema = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'
    fields = [*token(site, base), ("schema", schema), ("id", "7"), ("side", "value")]
    assert site.send(f"{base}/records/schemas", fields).status_code == 303
    assert "id 7" in check(site.get(f"{base}/records/schemas"))
    page = unescape(check(site.get(f"{base}/0/0")))
    assert '"id": "abc"' in page
    assert "schema id 7" in page
    page = check(site.get(f"{base}/records?q=value.id%20%3D%20abc"))
    assert offsets_in(page) == [0]
    fields[1] = ("schema", "<script>")
    assert "neither JSON" in text_of(check(site.send(f"{base}/records/schemas", fields), 400))


def test_internal_topics_are_decoded(site: Site) -> None:
    site.create_topic("committed")
    with site.serving.connect() as wire:
        find = FindCoordinatorRequest(key="billing")
        wait_for(lambda: wire.ask(find, 3).error_code == 0, "there is a coordinator")
        commit = OffsetCommitRequest(
            group_id="billing",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic(
                    name="committed",
                    partitions=[
                        OffsetCommitRequestPartition(partition_index=0, committed_offset=42)
                    ],
                )
            ],
        )
        wait_for(
            lambda: wire.ask(commit, 8).topics[0].partitions[0].error_code == 0,
            "the offset is committed",
        )
    query = httpx.QueryParams(q="key.group = billing and value.offset = 42")
    page = check(site.get(f"/topics/__consumer_offsets/records?{query}"))
    assert "OffsetKey" in page


def test_live_rows_come_and_go_on_after_a_break(site: Site, topic: str) -> None:
    put(site, topic, rows_of(3))
    page = check(site.get(f"/topics/{topic}/records/live"))
    assert f'hx-sse:connect="/topics/{topic}/records/events' in page

    async def read(last_id: str, wanted: int) -> list[News]:
        access = TopicAccess(site.door, site.door.anonymous("127.0.0.1"), topic)
        decoder = Decoder(topic, "value")
        tail = Tail(
            access, None, decoder, decoder, None, ALL, Work().executor,
            asyncio.get_running_loop().time, Rests(),
        )  # fmt: skip
        found: list[News] = []
        async for news in tail.news(last_id):
            found.append(news)
            if sum(len(each.rows) + each.left_out for each in found) >= wanted:
                return found
        return found

    first = site.run(read("", 0))
    assert first[-1].rows == []
    put(site, topic, rows_of(4, 3))
    second = site.run(read(first[-1].position, 4))
    assert [row.offset for news in second for row in news.rows] == [3, 4, 5, 6]
    put(site, topic, rows_of(80, 7))
    third = site.run(read(second[-1].position, 80))
    assert sum(len(news.rows) for news in third) <= 51
    assert sum(news.left_out for news in third) >= 29


def has_markers(site: Site, topic: str, count: int) -> bool:
    return site.get(f"/topics/{topic}/records").text.count(">marker<") == count


def test_transactions_and_holes_are_marked(site: Site, topic: str) -> None:
    name = f"{topic}-producer"
    with site.serving.connect() as wire:
        begin = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
        find = FindCoordinatorRequest(key=name, key_type=1)
        wait_for(lambda: wire.ask(find, 3).error_code == 0, "there is a coordinator")
        answers: list[Any] = []

        def begins() -> bool:
            answers.append(wire.ask(begin, 4))
            return not answers[-1].error_code

        wait_for(begins, "the producer has an id")
        begun = answers[-1]
        who = {"producer_id": begun.producer_id, "producer_epoch": begun.producer_epoch}
        for sequence, committed in enumerate((True, False, None)):
            added = wire.ask(
                AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id=name,
                    v3_and_below_producer_id=begun.producer_id,
                    v3_and_below_producer_epoch=begun.producer_epoch,
                    v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
                ),
                3,
            )
            assert (
                not added.results_by_topic_v3_and_below[0]
                .results_by_partition[0]
                .partition_error_code
            ), added
            batch = build_batch(
                [(TIMESTAMP, b"k", b"v", ())], base_sequence=sequence, transactional=True, **who
            )
            data = PartitionProduceData(index=0, records=batch)
            produced = wire.ask(
                ProduceRequest(
                    transactional_id=name,
                    acks=-1,
                    timeout_ms=60_000,
                    topic_data=[TopicProduceData(name=topic, partition_data=[data])],
                ),
                9,
            )
            assert produced.responses[0].partition_responses[0].error_code == 0, produced
            if committed is not None:
                end = EndTxnRequest(transactional_id=name, committed=committed, **who)
                assert wire.ask(end, 3).error_code == 0
                wait_for(partial(has_markers, site, topic, sequence + 1), "the marker is written")
    page = text_of(check(site.get(f"/topics/{topic}/records")))
    assert page.count(" committed ") == 1
    assert re.findall(r"v (committed|aborted|open) ", page) == ["open", "aborted", "committed"]
    assert "open: readers of committed records wait" in text_of(
        check(site.get(f"/topics/{topic}/0/4"))
    )
    with site.serving.connect() as wire:
        end = EndTxnRequest(transactional_id=name, committed=True, **who)
        assert wire.ask(end, 3).error_code == 0


def test_the_stream_of_events(site: Site, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_pages, "STREAM_S", 0.0)
    first = site.get(f"/topics/{topic}/records/events")
    assert first.headers["content-type"].startswith("text/event-stream")
    found = re.match(r"id: (\S+)\n", first.text)
    assert found is not None
    put(site, topic, [(TIMESTAMP, b"k", "<script>\n\u2028</script>".encode(), ())])
    again = site.get(f"/topics/{topic}/records/events", **{"last-event-id": found[1]})
    assert "&lt;script&gt;" in check(again)
    assert all(line.startswith(("id: ", "data: ")) for line in again.text.split("\n") if line)
    assert site.run(_streams(site)) == 0


async def _streams(site: Site) -> int:
    return sum(each.streams for each in gc.get_objects() if isinstance(each, Session))


def test_the_users_own_rights_decide(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Site(tmp_path_factory.mktemp("secured"), SECURED) as secured:
        secured.log_in("admin", "admin-secret")
        admin = secured.browser
        secured.create_topic("guarded")
        secured.browser = secured.new_browser()
        secured.log_in("alice", "alice-secret")
        for path in (
            "records", "records.jsonl", "0/0", "0/0/value.bin", "records/events", "records?q=a",
        ):  # fmt: skip
            denied = secured.get(f"/topics/guarded/{path}")
            assert denied.status_code in (403, 404), (path, denied.status_code)
        page = secured.get("/topics").text
        token_of_alice = re.search(r'name="_token" value="([^"]*)"', page)
        assert token_of_alice is not None
        planned = secured.send(
            "/topics/guarded/records/produce",
            [("_token", token_of_alice[1]), ("value", "x"), ("value_format", "text"),
             ("confirmed", "yes")],
        )  # fmt: skip
        assert "there is no topic guarded, or it may not be seen" in text_of(planned.text)
        secured.run(secured.browser.aclose())
        secured.browser = admin
        assert secured.get("/topics/guarded/records").status_code == 200
        assert "Nothing" not in secured.get("/topics/guarded/records?from=oldest").text


@pytest.mark.parametrize("mode", [Mode.READ_ONLY, Mode.METADATA_ONLY])
def test_modes_forbid_what_they_say(tmp_path_factory: pytest.TempPathFactory, mode: Mode) -> None:
    with Site(tmp_path_factory.mktemp("mode"), mode=mode) as limited:
        with limited.serving.connect() as wire:
            create_topic(wire, "shown")
        put(limited, "shown", [(TIMESTAMP, None, b"secret", ())])
        reads = mode is Mode.READ_ONLY
        for path in ("records", "0/0", "0/0/value.bin", "records.jsonl"):
            response = limited.get(f"/topics/shown/{path}")
            assert response.status_code == (200 if reads else 403), path
            assert ("secret" in response.text) == reads, path
        page = limited.get("/topics").text
        found = re.search(r'name="_token" value="([^"]*)"', page)
        assert found is not None
        sent = limited.send(
            "/topics/shown/records/produce",
            [("_token", found[1]), ("value", "x"), ("value_format", "text"),
             ("confirmed", "yes"), ("target", "shown")],
        )  # fmt: skip
        assert "forbids it" in text_of(sent.text)
