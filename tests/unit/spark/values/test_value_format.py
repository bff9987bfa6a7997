"""Values as typed columns: what cannot be read says why and harms nobody beside it."""

from __future__ import annotations

import datetime
import decimal
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")

from barnabas.spark.values.value_format import ValueFormat  # noqa: E402

KIND = pa.struct([("id", pa.int64()), ("name", pa.string())])


def read(values: list[bytes | None], name: str, kind: object = KIND) -> tuple[list, list]:  # type: ignore[type-arg]
    found, errors = ValueFormat(name).reader()(pa.array(values, pa.binary()), kind)
    assert len(found) == len(errors) == len(values)
    return found.to_pylist(), errors.to_pylist()


def test_json_becomes_structs() -> None:
    found, errors = read([b'{"id": 1, "name": "a", "x": [1]}', b'{"name": null}'], "json")
    assert found == [{"id": 1, "name": "a"}, {"id": None, "name": None}]
    assert errors == [None, None]


@settings(deadline=None)  # the first call loads Arrow's readers
@given(
    st.lists(
        st.sampled_from(
            [
                *(b'{"id": 7, "name": "n"}', b'{"id": "x"}', b"{", b"", b" ", None, b"5"),
                *(b"{}\n{}", b"null", b"{}null", b"[{}]", b'{"name": "\xff"}'),
                b'{"id": 1, "id": 2}',
            ]
        )
    )
)
def test_bad_values_stand_alone(values: list[bytes | None]) -> None:
    good = b'{"id": 7, "name": "n"}'
    found, errors = read(values, "json")
    for value, struct, error in zip(values, found, errors, strict=True):
        if value == good:
            assert (struct, error) == ({"id": 7, "name": "n"}, None)
        elif value is None:
            assert (struct, error) == (None, None)
        else:
            assert struct is None
            assert error


def test_line_breaks_between_the_parts_of_an_object_are_fine() -> None:
    pretty = json.dumps({"id": 1, "name": "a"}, indent=2).encode()
    assert read([pretty, b'{"id": 2}'], "json") == (
        [{"id": 1, "name": "a"}, {"id": 2, "name": None}],
        [None, None],
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"null", "not a JSON object"),  # of which Arrow dies, and the process with it
        (b"\nnull\n", "not a JSON object"),
        (b"[1]", "not a JSON object"),
        (b" \n", "empty"),
        (b'{"id": 1}null', "more than one JSON value"),
        (b'{"name": "\xff"}', "not UTF-8: invalid start byte at byte 10"),
    ],
)
def test_json_that_is_no_object_says_so(value: bytes, why: str) -> None:
    assert read([value], "json") == ([None], [why])
    good = {"id": 1, "name": None}
    assert read([b'{"id": 1}', value, None], "json") == ([good, None, None], [None, why, None])


def test_what_stands_around_an_object_means_nothing() -> None:
    texts = [
        b'  {"id": 1}',
        b'\xef\xbb\xbf{"id": 2}',
        b'\r\n{"id": 3}\t\n',
        '{"name": "ä"}'.encode(),
    ]
    found, errors = read(texts, "json")
    assert errors == [None] * 4
    assert [(each["id"], each["name"]) for each in found] == [
        (1, None),
        (2, None),
        (3, None),
        (None, "ä"),
    ]


def test_words_in_csv_are_words() -> None:
    found, errors = read([b"1,NA", b"2,null", b"3,", b",x"], "csv")
    assert [(each["id"], each["name"]) for each in found] == [
        (1, "NA"),
        (2, "null"),
        (3, None),
        (None, "x"),
    ]
    assert errors == [None] * 4


def test_csv_becomes_structs() -> None:
    found, errors = read([b'1,"a,b"', b"x,y", b"1", b"2,z", b"1\n2", b"1,2,3"], "csv")
    assert found == [{"id": 1, "name": "a,b"}, None, None, {"id": 2, "name": "z"}, None, None]
    assert [error is None for error in errors] == [True, False, False, True, False, False]


def test_text_must_be_utf8() -> None:
    found, errors = read([b"a", b"\xff", None], "string", pa.string())
    assert found == ["a", None, None]
    assert errors == [None, "not UTF-8: invalid start byte at byte 0", None]
    assert read(["ä".encode()], "string", pa.string()) == (["ä"], [None])


def test_dates_and_times_are_read_from_texts() -> None:
    kind = pa.struct(
        [
            ("day", pa.date32()),
            ("at", pa.timestamp("us", tz="UTC")),
            ("days", pa.list_(pa.struct([("day", pa.date32())]))),
        ]
    )
    day, at = datetime.date(2026, 1, 2), datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC)
    text = b'{"day": "2026-01-02", "at": "2026-01-02T03:00:00Z", "days": [{"day": "2026-01-02"}]}'
    expected = {"day": day, "at": at, "days": [{"day": day}]}
    assert read([text, b'{"day": "soon"}'], "json", kind)[0] == [expected, None]
    line = pa.struct([("day", pa.date32()), ("price", pa.decimal128(6, 2))])
    assert read([b"2026-01-02,1.25"], "csv", line)[0] == [
        {"day": day, "price": decimal.Decimal("1.25")}
    ]
