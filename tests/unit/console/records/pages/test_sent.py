"""Records that are sent: new ones, some again, dead letters back, lines of a file."""

from __future__ import annotations

import pytest
from tests.unit.broker.serving import TIMESTAMP
from tests.unit.console.records.pages.checking import check, confirm, offsets_in, token
from tests.unit.console.records.putting import put
from tests.unit.console.site import Site, text_of


def test_produces_after_a_preview(site: Site, topic: str) -> None:
    base = f"/topics/{topic}"
    fields = [
        *token(site, base),
        ("target", topic),
        ("key", "zero\u200dwidth"),
        ("key_format", "text"),
        ("value", ' {"a":\n1} '),
        ("value_format", "json"),
        ("headers", "trace: 1\nempty:"),
        ("partition", ""),
    ]
    page = check(site.send(f"{base}/records/produce", fields))
    assert "Nothing has been sent yet" in text_of(page)
    check(site.get(f"{base}/0/0"), 404)
    assert "from offset 0 on" in text_of(check(confirm(site, page)))
    assert site.get(f"{base}/0/0/value.bin").content == b' {"a":\n1} '
    assert site.get(f"{base}/0/0/key.bin").content == "zero\u200dwidth".encode()
    assert site.get(f"{base}/0/0/header-0.bin").content == b"1"
    assert site.get(f"{base}/0/0/header-1.bin").content == b""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": "{", "value_format": "json"}, "value is not JSON"),
        ({"key": "zz", "key_format": "hex"}, "hexadecimal"),
        ({"headers": "no colon"}, "line 1"),
        ({"partition": "-1"}, "partition"),
    ],
)
def test_wrong_records_are_not_planned(
    site: Site, topic: str, change: dict[str, str], reason: str
) -> None:
    base = f"/topics/{topic}"
    fields = {"target": topic, "value": "x", "value_format": "text"} | change
    page = check(site.send(f"{base}/records/produce", [*token(site, base), *fields.items()]), 400)
    assert reason in text_of(page)


def test_without_the_token_nothing_is_sent(site: Site, topic: str) -> None:
    response = site.send(f"/topics/{topic}/records/produce", [("value", "x"), ("confirmed", "yes")])
    assert response.status_code == 403
    check(site.get(f"/topics/{topic}/0/0"), 404)


def test_brings_dead_letters_back(site: Site) -> None:
    site.create_topic("orders")
    site.create_topic("orders-dlt")
    letters = [
        (TIMESTAMP, b"k1", b"v1", [
            ("kafka_dlt-original-topic", b"orders"),
            ("kafka_dlt-original-partition", (0).to_bytes(4, "big")),
            ("kafka_dlt-exception-message", b"boom"),
            ("trace", b"t1"),
        ]),
        (TIMESTAMP, b"k2", b"v2", [("__connect.errors.topic", b"orders")]),
        (TIMESTAMP, b"k3", b"v3", []),
        (TIMESTAMP, b"k4", b"v4", [("__connect.errors.topic", b"gone")]),
    ]  # fmt: skip
    put(site, "orders-dlt", letters)
    base = "/topics/orders-dlt"
    fields = [*token(site, base), ("action", "back"), ("all", "yes"), ("query-q", "value exists")]
    page = check(site.send(f"{base}/records/send", fields))
    text = text_of(page)
    assert "2 records to send" in text
    assert "no header says where it came from" in text
    assert "there is no topic gone" in text
    check(confirm(site, page))
    page = check(site.get("/topics/orders/records?from=oldest"))
    assert offsets_in(page) == [0, 1]
    assert "trace: t1" in page or "trace: t2" in page
    assert "boom" not in page


def test_wrong_lines_are_not_imported(site: Site, topic: str) -> None:
    base = f"/topics/{topic}"
    for lines, reason in [
        ("", "no record"),
        ('{"value": "a"}\n{"key": 1}', "line 2"),
        ('{"value": "\\ud800"}', "line 1"),
        ("[" * 100_000, "line 1"),
    ]:
        fields = [*token(site, base), ("lines", lines)]
        assert reason in text_of(check(site.send(f"{base}/records/import", fields), 400))
