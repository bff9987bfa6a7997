"""The language of filters: what it accepts, and that nothing else happens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.console.records.filter_language import (
    DEPTH_MAX,
    LENGTH_MAX,
    NODES_MAX,
    Among,
    And,
    Compare,
    Constant,
    Exists,
    Field,
    Filter,
    FilterError,
    Not,
    Number,
    Or,
    Search,
    Text,
    iso_ms,
    moment_ms,
    parse,
    print_filter,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.one_of(
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str),
).map(Number)
LITERALS = st.one_of(TEXT.map(Text), NUMBERS, st.sampled_from([True, False, None]).map(Constant))
STEPS = st.one_of(TEXT, st.integers(0, 10**6))
SIDES = st.builds(Field, st.sampled_from(["key", "value"]), st.lists(STEPS, max_size=4).map(tuple))
HEADERS = st.builds(Field, st.just("headers"), TEXT.map(lambda name: (name,)))
PARTS = st.one_of(SIDES, HEADERS)
COUNTS = st.sampled_from(["partition", "offset", "size"]).map(Field)
CONDITIONS = st.one_of(
    TEXT.filter(bool).map(Search),
    st.builds(Compare, PARTS, st.sampled_from(["=", "!=", "contains"]), LITERALS),
    st.builds(
        Compare,
        PARTS,
        st.sampled_from(["<", "<=", ">", ">="]),
        st.one_of(TEXT.map(Text), NUMBERS),
    ),
    st.builds(
        Compare, PARTS, st.just("~"), st.sampled_from(["^a", "b+", "(?i)x", '"\\d"']).map(Text)
    ),
    st.builds(Compare, COUNTS, st.sampled_from(["=", "!=", "<", ">="]), NUMBERS),
    st.builds(
        Compare,
        st.just(Field("timestamp")),
        st.sampled_from(["<", ">="]),
        st.sampled_from([Text("-15m"), Text("2026-11-18T12:00:00Z"), Number("17")]),
    ),
    st.builds(Among, PARTS, st.lists(LITERALS, min_size=1, max_size=3).map(tuple)),
    st.builds(Exists, PARTS),
)


def _joined(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(several.map(And), several.map(Or), inner.map(Not))


TREES = st.recursive(CONDITIONS, _joined, max_leaves=8)


@given(TREES)
def test_what_is_printed_is_parsed_to_the_same_tree(tree: Filter) -> None:
    printed = print_filter(tree)
    if len(printed) <= LENGTH_MAX:
        assert parse(printed) == tree


WORDS = st.sampled_from(
    [
        *"()[],.\"'=<>~!-", " ", "and", "or", "not", "in", "contains", "exists", "key", "value",
        "headers", "value.a", "[0]", '["x', "partition", "timestamp", "1", "-5m", "null", "\\u00",
        "\ud800", "\0",
    ]
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=30).map("".join)))
def test_nothing_but_its_own_error_is_raised(text: str) -> None:
    failure: FilterError | None = None
    tree: Filter | None = None
    try:
        tree = parse(text)
    except FilterError as raised:
        failure = raised
    if failure is not None:
        assert 0 <= failure.position <= len(text)
        part, pointer = failure.pointer
        assert pointer.index("^") <= len(part)
    else:
        assert tree is None or parse(print_filter(tree)) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("order-17", Search("order-17")),
        ("'out of \"stock\"'", Search('out of "stock"')),
        ("key == a", Compare(Field("key"), "=", Text("a"))),
        (
            'value.a["b c"][2].d >= 1.50',
            Compare(Field("value", ("a", "b c", 2, "d")), ">=", Number("1.50")),
        ),
        (
            "partition in (0,3)",
            Among(Field("partition"), (Number("0"), Number("3"))),
        ),
        (
            "a b OR c",
            Or((And((Search("a"), Search("b"))), Search("c"))),
        ),
        ("not not value exists", Not(Not(Exists(Field("value"))))),
        ('value = "\\ud83d\\ude00"', Compare(Field("value"), "=", Text("😀"))),
    ],
)
def test_reads(text: str, tree: Filter) -> None:
    assert parse(text) == tree


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("vlaue = 3", "unknown field vlaue", 0),
        ("value.status =", "expected a value but got the end", 14),
        ("(a or b", "expected )", 7),
        ('"abc', "not closed", 0),
        ("value ~ '('", "regular expression", 8),
        ("partition = many", "number", 12),
        ("timestamp > noon", "2026-11-18T12:00:00Z", 12),
        ("headers = 1", "headers.NAME", 0),
        ("value < null", "no order", 8),
        ("offset contains 1", "cannot contain", 0),
        ("value.", "a name must follow the dot", 6),
        ("value[x]", "a number or a quoted name", 6),
        ("a )", "did not expect ')'", 2),
        ('""', "must not be empty", 0),
    ],
)
def test_says_what_is_wrong_and_where(text: str, reason: str, position: int) -> None:
    with pytest.raises(FilterError) as failed:
        parse(text)
    assert reason in str(failed.value)
    assert failed.value.position == position


def test_is_bounded_in_length_depth_and_conditions() -> None:
    for text in (
        "a" * (LENGTH_MAX + 1),
        "(" * (DEPTH_MAX + 2) + "a" + ")" * (DEPTH_MAX + 2),
        "not " * (DEPTH_MAX + 2) + "a",
        "a " * (NODES_MAX + 1),
    ):
        with pytest.raises(FilterError):
            parse(text)


def test_an_empty_filter_is_none() -> None:
    assert parse(" \n\t") is None


def test_times() -> None:
    assert iso_ms("1970-01-01T00:00:01Z") == 1000
    assert iso_ms("1970-01-01 01:00:00.250+01:00") == 250
    assert iso_ms("1970-01-02") == 86_400_000
    assert iso_ms("1970-13-02") is None
    assert iso_ms("0001-01-01T00:00:00+23:59") is not None
    assert moment_ms(Text("-15m"), 1_000_000) == 100_000
    assert moment_ms(Number("5"), 1_000_000) == 5
    with pytest.raises(ValueError):
        moment_ms(Number("1.5"), 0)
