"""The list of topics: filter, order, pages; and creating one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.unit.console.site import Site, text_of


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker with more topics than a page has rows."""
    from barnabas.console.listing import PAGE_ROWS

    with Site(tmp_path_factory.mktemp("data")) as running:
        for number in range(PAGE_ROWS + 5):
            running.create_topic(f"t{number:03}", 1 + number % 3)
        yield running


def names(page: str) -> list[str]:
    """Return the topics that a page lists, in order."""
    return re.findall(r'<th scope="row">\s*<a href="/topics/([^"]+)">', page)


def test_a_long_list_has_pages_and_every_topic_is_on_one(many: Site) -> None:
    first = many.page("/topics")
    assert len(names(first)) == 100
    following = re.search(r'href="(/topics\?[^"]*after=[^"]*)" rel="next"', first)
    assert following is not None
    second = many.page(following[1].replace("&amp;", "&"))
    assert names(first) + names(second) == [f"t{number:03}" for number in range(105)]
    assert 'rel="next"' not in second
    assert "First page" in second


def test_the_filter_is_a_part_of_a_name_in_any_case(many: Site) -> None:
    assert names(many.page("/topics?q=T00")) == [f"t00{number}" for number in range(10)]
    assert "There are no topics" in many.page("/topics?q=absent")
    rows = many.get("/topics.json?q=t001").json()["rows"]
    for row in rows:
        assert row.pop("bytes_in") in (None, 0), "known after two looks"
        assert row.pop("bytes_out") in (None, 0)
    assert rows == [
        {
            "name": "t001", "partitions": 2, "replicas": 1, "offsets": 0, "bytes": 0,
            "under_replicated": 0, "offline": 0, "not_preferred": 0, "kind": "",
        }
    ]  # fmt: skip


def test_other_orders_go_through_all_pages_once(many: Site) -> None:
    seen: list[str] = []
    path: str | None = "/topics?sort=-partitions"
    while path is not None:
        page = many.page(path)
        seen += names(page)
        found = re.search(r'href="([^"]*)" rel="next"', page)
        path = found[1].replace("&amp;", "&") if found else None
    assert len(seen) == len(set(seen)) == 105
    sizes = [1 + int(name[1:]) % 3 for name in seen]
    assert sizes == sorted(sizes, reverse=True)


def test_json_and_csv_have_all_rows(many: Site) -> None:
    assert len(many.get("/topics.json").json()["rows"]) == 105
    assert len(many.get("/topics.csv").text.splitlines()) == 106


def test_a_topic_is_created_with_its_configs(many: Site) -> None:
    fields = {"name": "made", "partitions": "4", "replicas": "", "configs": "retention.ms=5000\n"}
    answer = many.post("/topics", fields)
    assert (answer.status_code, answer.headers["location"]) == (303, "/topics/made")
    page = text_of(many.page("/topics/made"))
    assert "4 partitions" in page
    assert "retention.ms 5000 topic" in page


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": "a b"}, "a b"),
        ({"name": ""}, "empty"),
        ({"name": "x", "partitions": "many"}, "is not a whole number"),
        ({"name": "x", "configs": "retention.ms"}, "must be written name=value"),
        ({"name": "x", "configs": "no.such=1"}, "no.such"),
        ({"name": "t000"}, "already exists"),
        ({"name": "x", "replicas": "3"}, "replica"),
    ],
)
def test_what_is_wrong_is_said_and_the_form_keeps_what_was_typed(
    many: Site, fields: dict[str, str], text: str
) -> None:
    answer = many.post("/topics", fields)
    assert answer.status_code == 409
    assert text in text_of(answer.text)
    for value in fields.values():
        assert value in answer.text
