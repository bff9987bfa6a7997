"""The list of records: newest, oldest, by offset, time and key; searches; what is in them."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import httpx
import pytest
from tests.unit.broker.serving import TIMESTAMP, wait_for
from tests.unit.console.records.pages.checking import (
    check,
    confirm,
    link,
    offsets_in,
    rows_of,
    token,
)
from tests.unit.console.records.putting import put
from tests.unit.console.site import Site, text_of

from barnabas.kernels import murmur2
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
