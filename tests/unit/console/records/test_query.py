"""Queries as the parameters of URLs."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.decoding import DECODERS
from barnabas.console.records.filter_language import FilterError
from barnabas.console.records.query import LIMIT_MAX, Query, QueryError, Start, read_query

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(
    st.builds(
        Query,
        start=st.sampled_from(list(Start)),
        partition=st.one_of(st.none(), st.integers(0, 2**31 - 1)),
        offset=st.integers(0, 2**63 - 1),
        time=st.sampled_from(["-15m", "2026-11-18T12:00Z", "17"]),
        key=TEXT,
        text=st.sampled_from(["", "value.a = 1", 'key = "é&="']),
        key_decoder=st.sampled_from(sorted(DECODERS)),
        value_decoder=st.sampled_from(sorted(DECODERS)),
        limit=st.integers(1, LIMIT_MAX),
        zone=st.sampled_from(["UTC", "Europe/Berlin"]),
    )
)
def test_a_url_gives_the_same_query(query: Query) -> None:
    url = query.url()
    again = read_query(dict(parse_qsl(url[1:], keep_blank_values=True)))
    assert again.url() == url
    assert again.start is query.start
    if query.start is Start.KEY:
        assert again.key == query.key


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("from", "middle"),
        ("partition", "-1"),
        ("partition", "³"),
        ("offset", "9" * 30),
        ("limit", "many"),
        ("kd", "pickle"),
    ],
)
def test_wrong_parameters_are_named(name: str, value: str) -> None:
    with pytest.raises(QueryError, match=f"^{name}="):
        read_query({name: value})


def test_wrong_filters_are_rejected() -> None:
    with pytest.raises(FilterError):
        read_query({"q": "value.a ="})


def test_empty_fields_of_a_form_are_defaults() -> None:
    names = ("from", "partition", "offset", "time", "key", "q", "kd", "vd", "limit", "after", "tz")
    assert read_query(dict.fromkeys(names, "")) == Query()


def test_there_is_a_limit_of_rows() -> None:
    assert read_query({"limit": "999999"}).limit == LIMIT_MAX
    assert read_query({"offset": "1,234"}).offset == 1234
