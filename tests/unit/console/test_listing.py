"""Lists: order, pages by the last row, and formats."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.requests import Request

from barnabas.console.listing import Column, Listing, csv_cell, page_of

COLUMNS = (Column("name", "Name", sorts=True), Column("size", "Size", "size", sorts=True))


def request(query: str = "", path: str = "/things") -> Request:
    return Request(
        {"type": "http", "method": "GET", "path": path, "query_string": query.encode(),
         "headers": [], "server": ("x", 80), "scheme": "http"}
    )  # fmt: skip


def listing(
    rows: list[dict[str, Any]], query: str = "", path: str = "/things", **more: Any
) -> Listing:
    made = Listing("Things", "/things", COLUMNS, rows)
    page_of(rows, made, request(query, path), page_rows=2, **more)
    return made


def rows(*pairs: tuple[str, int | None]) -> list[dict[str, Any]]:
    return [{"name": name, "size": size} for name, size in pairs]


def walk(given: list[dict[str, Any]], query: str) -> list[str]:
    """Return the names on all pages, in order."""
    found: list[str] = []
    while True:
        page = listing(given, query)
        found += [row["name"] for row in page.rows]
        if not page.next:
            return found
        query = page.next_page.partition("?")[2]


def test_pages_follow_the_last_row() -> None:
    given = rows(("c", 1), ("a", 2), ("e", 3), ("b", 4), ("d", 5))
    assert walk(given, "") == list("abcde")
    assert walk(given, "sort=-name") == list("edcba")
    assert walk(given, "sort=size") == list("caebd")
    assert walk(given, "sort=-size") == list("dbeac")
    assert walk(given, "sort=no.such") == list("abcde")


def test_equal_values_are_ordered_by_name_and_none_is_lost() -> None:
    given = rows(("a", 1), ("b", 1), ("c", 1), ("d", None), ("e", None), ("f", 2))
    assert walk(given, "sort=size") == list("deabcf")
    assert walk(given, "sort=-size") == list("fabcde")


def test_a_page_continues_where_its_row_was_deleted() -> None:
    first = listing(rows(("a", 1), ("b", 1), ("c", 1)))
    assert first.next == "b"
    later = listing(rows(("a", 1), ("c", 1)), "after=b")
    assert [row["name"] for row in later.rows] == ["c"]


def test_names_with_any_character_are_followed() -> None:
    given = rows(*((name, 1) for name in ("a&b", "a~b", "a=b", "ä", "a b", "%41")))
    assert sorted(walk(given, "sort=-size")) == sorted(row["name"] for row in given)


def test_other_formats_have_all_rows() -> None:
    given = rows(("a", 1), ("b", 2), ("c", 3))
    assert len(listing(given, path="/things.json").rows) == 3
    assert listing(given, path="/things.csv").next == ""


def test_the_head_of_a_column_turns_its_order_around() -> None:
    made = listing(rows(("a", 1)), "sort=size")
    assert made.sorted_by("size") == "/things?sort=-size"
    assert made.sorted_by("name") == "/things?sort=name"
    made = listing(rows(("a", 1)), "sort=-size")
    assert made.sorted_by("size") == "/things?sort=size"


@pytest.mark.parametrize(
    ("value", "cell"),
    [("plain", "plain"), ("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@a", "'@a"),
     ("\tx", "'\tx"), (-1, "-1"), (2.5, "2.5"), (None, "")],
)  # fmt: skip
def test_no_cell_is_a_formula(value: Any, cell: str) -> None:
    assert csv_cell(value) == cell
