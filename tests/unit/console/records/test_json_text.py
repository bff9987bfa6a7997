"""JSON as it was written."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.json_text import (
    DOCUMENT_MAX,
    NotJsonError,
    indent_json,
    parse_json,
    write_json,
)

JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)),
    max_leaves=20,
)


@given(JSON, st.booleans())
def test_indented_json_is_the_same_document(document: object, ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only, allow_nan=False)
    indented = indent_json(text)
    assert json.loads(indented) == json.loads(text)
    assert json.loads(json.dumps(json.loads(indented))) == json.loads(text)


def test_indented_json_keeps_every_token() -> None:
    text = '{"a":1.50,"a":[],"b":{},"c":[1e5,"x,\\u00e9:{}"]}'
    expected = (
        '{\n  "a": 1.50,\n  "a": [],\n  "b": {},\n  "c": [\n    1e5,\n    "x,\\u00e9:{}"\n  ]\n}'
    )
    assert indent_json(text) == expected


def test_numbers_are_exact() -> None:
    assert parse_json(b"[9007199254740993, 1.10, 1E400]") == [
        9007199254740993,
        Decimal("1.10"),
        Decimal("1E400"),
    ]
    assert parse_json("1" * 5000) == Decimal("1" * 5000)


@pytest.mark.parametrize(
    "data",
    [
        b"NaN",
        b"[1,]",
        b"\xff",
        b"[" * 100_000,
        b" " * (DOCUMENT_MAX + 1),
        b"1e" + b"9" * 100,
    ],
    ids=range(6),
)
def test_what_is_not_json_or_too_much_is_rejected(data: bytes) -> None:
    with pytest.raises(NotJsonError):
        parse_json(data)


def test_deep_documents_are_not_indented() -> None:
    deep = "[" * 200 + "]" * 200
    assert parse_json(deep)
    with pytest.raises(NotJsonError):
        indent_json(deep)
    with pytest.raises(NotJsonError):
        write_json(parse_json(deep))


def test_documents_of_decoders_are_written() -> None:
    document = {1: b"\xca", "a": [None, True, Decimal("1.50"), 0.5, 2**70, {}, []]}
    assert json.loads(write_json(document)) == {
        "1": "ca",
        "a": [None, True, 1.5, 0.5, 2**70, {}, []],
    }
    assert "1.50" in write_json(document)
