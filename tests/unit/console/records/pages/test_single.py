"""One record, with its bytes."""

from __future__ import annotations

from html import unescape

from tests.unit.broker.serving import TIMESTAMP
from tests.unit.console.records.pages.checking import check, link
from tests.unit.console.records.putting import put
from tests.unit.console.site import Site, text_of


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
