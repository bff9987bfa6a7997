"""Filters on records: typed comparison, and bounds that never hide a record that passes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.console.records.test_filter_language import TREES

from barnabas.console.records.decoding import Decoder
from barnabas.console.records.filter_evaluation import compile_filter, prune
from barnabas.console.records.filter_language import Filter, parse
from barnabas.console.records.scanning import _Candidate
from barnabas.kernels import Record

NOW_MS = 1_800_000_000_000


def record(
    value: Any = None, key: bytes | None = None, headers: Any = (), offset: int = 7, time: int = 50
) -> Record:
    data = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return Record(offset, time, key, data, tuple(headers))


def passes(text: str, found: Record, how: str = "auto", partition: int = 3) -> bool:
    test = compile_filter(parse(text), NOW_MS)
    assert test is not None
    candidate = _Candidate(partition, Decoder("t", "key", how), Decoder("t", "value", how))
    candidate.hold(found)
    return test(candidate)


ORDER = {
    "id": 9007199254740993,
    "price": 9.9,
    "status": "paid",
    "tags": ["new", "eu"],
    "at": "2026-11-18T12:00:00+01:00",
    "epoch": 1_700_000_000,
    "none": None,
    "ok": True,
    "code": "007",
    "in": {"x y": [{"z": 1}]},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("value.id = 9007199254740993", True),
        ("value.id = 9007199254740992", False),
        ("value.price >= 9.90", True),
        ("value.price > 9.9", False),
        ("value.price = 9.9000", True),
        ("value.status = paid", True),
        ("value.status != paid", False),
        ("value.missing != paid", True),
        ("value.status in (open, paid)", True),
        ("value.status ~ '^p.*d$'", True),
        ("value.status contains ai", True),
        ("value.tags contains eu", True),
        ("value.tags contains e", False),
        ("value.tags[1] = eu", True),
        ("value.tags[2] exists", False),
        ("value.at = 2026-11-18T11:00:00Z", True),
        ("value.at > 2026-11-18T11:30:00Z", False),
        ("value.epoch < 2023-11-15", True),
        ("value.none = null", True),
        ("value.none exists", True),
        ("value.missing = null", False),
        ("value.ok = true", True),
        ("value.code = 7", True),
        ('value.code = "7"', False),
        ('value.in["x y"][0].z = 1', True),
        ("value.in contains 'x y'", True),
        ("not value.status = paid or value.id exists", True),
        ("PAID", True),
        ("value contains PAID", False),
        ("partition = 3 and offset = 7 and size > 10", True),
        ("partition in (1, 2)", False),
        ("timestamp < 1970-01-01T00:00:01Z", True),
        ("timestamp > -15m", False),
    ],
)
def test_documents(text: str, expected: bool) -> None:
    assert passes(text, record(ORDER)) is expected


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        ("key = order-1", record(key=b"order-1"), True),
        ("key = 42", record(key=b"42"), True),
        ("key exists", record(), False),
        ("value = null", record(), True),
        ("value = null", record(b"null"), False),
        ("value exists", record(b""), True),
        ("value = 7", record((7).to_bytes(8, "big")), True),
        ("value = abc", record(b'"abc"'), True),
        ("value = '\"abc\"'", record(b'"abc"'), True),
        ("headers.a = 1", record(headers=[("a", b"1")]), True),
        ("headers.a > 9", record(headers=[("a", b"10")]), True),
        ("headers.a = 2", record(headers=[("a", b"2"), ("a", b"1")]), False),
        ("headers.a = null", record(headers=[("a", None)]), True),
        ("headers.b exists", record(headers=[("a", b"")]), False),
        ('headers["x\\ny"] exists', record(headers=[("x\ny", b"")]), True),
        ("headers.a.b = 3", record(headers=[("a", b'{"b": 3}')]), True),
        ("TRACE", record(headers=[("x-trace", b"")]), True),
        ("value.a = 1", record(b"\xff\xfe"), False),
        ("value.a = 1e999", record(b'{"a": 1e999999999999999999999}'), False),
        ("value.a > 1", record(b'{"a": 1e999999}'), True),
        ("value.a > 2026-01-01", record(b'{"a": 1e999999}'), True),
    ],
)
def test_records(text: str, found: Record, expected: bool) -> None:
    assert passes(text, found) is expected


def test_text_is_found_in_what_a_decoder_made_of_bytes() -> None:
    assert passes("DEADBEEF", record(b"\xde\xad\xbe\xef"), "hex")


VALUES = st.one_of(
    st.none(),
    st.binary(max_size=20),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(["a", "b", "status"]), inner, max_size=3),
        ),
        max_leaves=6,
    ).map(lambda found: json.dumps(found).encode()),
)


@given(TREES, VALUES, VALUES, st.integers(0, 5), st.integers(-(10**6), 2 * 10**12))
def test_no_filter_raises_and_no_bound_hides_a_record_that_passes(
    tree: Filter, key: bytes | None, value: bytes | None, partition: int, time: int
) -> None:
    test = compile_filter(tree, NOW_MS)
    assert test is not None
    candidate = _Candidate(partition, Decoder("t", "key"), Decoder("t", "value"))
    candidate.hold(Record(7, time, key, value, (("a", b"1"), ("b", None))))
    if test(candidate):
        bounds = prune(tree, NOW_MS)
        assert bounds.partitions is None or partition in bounds.partitions
        assert bounds.offset_min <= 7 <= bounds.offset_max
        assert bounds.timestamp_min <= time <= bounds.timestamp_max
        if bounds.needle is not None:
            chunk = b"".join([key or b"", b"\1", value or b"", b"\1a1b"])
            assert bounds.needle.finder()(chunk)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("offset > 5", 6, 2**63 - 1),
        ("offset >= 5.5", 6, 2**63 - 1),
        ("offset < 5.5", 0, 5),
        ("offset = 5 and offset < 9", 5, 5),
        ("offset = 5 or offset = 9", 5, 9),
        ("not offset = 5", 0, 2**63 - 1),
    ],
)
def test_bounds_of_offsets(text: str, low: int, high: int) -> None:
    bounds = prune(parse(text), NOW_MS)
    assert (bounds.offset_min, bounds.offset_max) == (low, high)


def test_escaped_text_is_not_missed() -> None:
    needle = prune(parse("value.name = crème"), NOW_MS).needle
    assert needle is not None
    assert needle.finder()(b'{"name": "cr\\u00e8me"}')
    assert needle.finder()('{"name": "crème"}'.encode())
    assert not needle.finder()(b'{"name": "other"}')
