"""What is sent: planned before, in the order of its partition."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.rows import Kind, Row
from barnabas.console.records.sending import (
    BATCH_BYTES,
    RECORD_MAX,
    Draft,
    Origin,
    SendingError,
    batches_of,
    bring_back,
    choose_partitions,
    encode_drafts,
    is_text,
    origin_of,
    read_headers,
    read_payload,
    send_again,
    show_headers,
)
from barnabas.kernels import murmur2
from barnabas.records.batch import iterate


def letter(*headers: tuple[str, bytes | None]) -> Row:
    return Row(Kind.RECORD, 1, 7, 5, 7, b"k", b"v", headers)


@pytest.mark.parametrize(
    ("text", "how", "data"),
    [
        ("é", "text", "é".encode()),
        ("", "text", b""),
        ("ignored", "null", None),
        (' {"a": 1}', "json", b' {"a": 1}'),
        ("0xCA fe\n00", "hex", b"\xca\xfe\0"),
    ],
)
def test_payloads(text: str, how: str, data: bytes | None) -> None:
    assert read_payload("value", text, how) == data


@pytest.mark.parametrize(
    ("text", "how"),
    [("{", "json"), ("c", "hex"), ("x", "pickle"), ("x" * (RECORD_MAX + 1), "text")],
)
def test_wrong_payloads_are_named(text: str, how: str) -> None:
    with pytest.raises(SendingError, match=r"^value"):
        read_payload("value", text, how)


def test_headers_in_lines_or_pairs() -> None:
    assert read_headers("a: 1\n\n b:  x: y \nc:") == (("a", b"1"), ("b", b"x: y"), ("c", b""))
    assert read_headers('[["a", null], ["b", "x\\ny"]]') == (("a", None), ("b", b"x\ny"))
    for wrong in ("no colon", ": 1", "[1]", '[["a"]]', "[", "[" * 100_000, '[["a", 1]]'):
        with pytest.raises(SendingError):
            read_headers(wrong)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


@given(st.lists(st.tuples(TEXT, st.one_of(st.none(), TEXT.map(str.encode)))).map(tuple))
def test_headers_that_are_text_come_back(headers) -> None:
    assert is_text(headers)
    assert read_headers(show_headers(headers)) == headers


def test_headers_that_are_not_text_are_noticed() -> None:
    assert not is_text((("a", b"\xff"),))


@pytest.mark.parametrize(
    ("headers", "origin"),
    [
        (
            [("__connect.errors.topic", b"orders"), ("__connect.errors.partition", b"3"),
             ("__connect.errors.offset", b"17")],
            Origin("orders", 3, 17),
        ),
        (
            [("kafka_dlt-original-topic", b"orders"),
             ("kafka_dlt-original-partition", (3).to_bytes(4, "big")),
             ("kafka_dlt-original-offset", (17).to_bytes(8, "big"))],
            Origin("orders", 3, 17),
        ),
        ([("kafka_dlt-original-topic", b"orders")], Origin("orders", None, None)),
        ([("kafka_dlt-original-topic", b"\xff")], None),
        ([("kafka_dlt-original-topic", None)], None),
        ([("trace", b"1")], None),
    ],
)  # fmt: skip
def test_origins_of_dead_letters(headers, origin: Origin | None) -> None:
    assert origin_of(tuple(headers)) == origin


def test_dead_letters_lose_what_was_added() -> None:
    row = letter(
        ("trace", b"1"), ("kafka_dlt-original-topic", b"orders"), ("kafka_dlt-exception", b"x")
    )
    (draft,) = bring_back([row], "orders-dlt", keep_partition=True)
    assert (draft.topic, draft.headers, draft.problem) == ("orders", (("trace", b"1"),), "")
    (draft,) = bring_back([row], "orders", keep_partition=True)
    assert "same topic" in draft.problem


def test_partitions_are_chosen_by_the_key_or_in_turn() -> None:
    drafts = [
        Draft("t", None, b"key", b""),
        Draft("t", None, None, b""),
        Draft("t", None, None, b""),
        Draft("t", 2, b"key", b""),
        Draft("t", 3, b"key", b""),
        Draft("gone", None, b"key", b""),
    ]
    chosen = choose_partitions(drafts, {"t": 3})
    assert [each.partition for each in chosen[:4]] == [
        (murmur2(b"key") & 0x7FFFFFFF) % 3, 0, 1, 2,
    ]  # fmt: skip
    assert "0 to 2" in chosen[4].problem
    assert "no topic gone" in chosen[5].problem


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, BATCH_BYTES)), max_size=12))
def test_batches_keep_the_order_and_are_bounded(sizes: list[tuple[int, int]]) -> None:
    drafts = [
        Draft("t", partition, b"%d" % each, b"x" * size)
        for each, (partition, size) in enumerate(sizes)
    ]
    batches = batches_of([*drafts, Draft("t", 0, None, None, problem="no")])
    for partition in range(3):
        sent = [draft for _, where, batch in batches if where == partition for draft in batch]
        assert sent == [draft for draft in drafts if draft.partition == partition]
    for _, _, batch in batches:
        assert len(batch) == 1 or sum(draft.size for draft in batch) <= BATCH_BYTES


def test_encoded_drafts_are_records() -> None:
    drafts = send_again([letter(("a", None))], "t", "s", keep_partition=True)
    drafts.append(Draft("t", 1, None, None, timestamp=9))
    records = list(iterate(encode_drafts(drafts, 77)))
    assert [(each.timestamp, each.key, each.value) for each in records] == [
        (77, b"k", b"v"),
        (9, None, None),
    ]
    assert json.loads(show_headers(tuple(records[0].headers))) == [["a", None]]
