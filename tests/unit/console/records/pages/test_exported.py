"""Downloads, and their way back."""

from __future__ import annotations

import io
import json

import pytest
from tests.unit.broker.serving import TIMESTAMP
from tests.unit.console.records.pages.checking import check, confirm, token
from tests.unit.console.records.putting import put
from tests.unit.console.site import Site


def test_exports_and_imports_again(site: Site, topic: str) -> None:
    rows = [
        (TIMESTAMP, b"=1+1", b"@SUM(A1)", [("h", b"\xff")]),
        (TIMESTAMP + 1, None, None, ()),
        (TIMESTAMP + 2, b"k", "\u2028 line".encode(), ()),
    ]
    put(site, topic, rows)
    base = f"/topics/{topic}"
    lines = site.get(f"{base}/records.jsonl?from=oldest")
    assert lines.headers["content-disposition"].startswith("attachment")
    found = [json.loads(line) for line in lines.text.split("\n") if line]
    assert [each["key"] for each in found] == ["=1+1", None, "k"]
    assert found[0]["headers"] == [["h", {"base64": "/w=="}]]
    cells = site.get(f"{base}/records.csv?from=oldest").text
    assert "'=1+1" in cells
    assert "'@SUM(A1)" in cells
    parquet = site.get(f"{base}/records.parquet?from=oldest").content
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(io.BytesIO(parquet)).to_pylist()
    assert [each["value"] for each in table] == [b"@SUM(A1)", None, "\u2028 line".encode()]
    site.create_topic(f"{topic}-copy")
    copy = f"/topics/{topic}-copy"
    page = check(site.send(f"{copy}/records/import", [*token(site, copy), ("lines", lines.text)]))
    check(confirm(site, page))
    again = site.get(f"{copy}/records.jsonl?from=oldest").text
    assert [json.loads(a) | {"topic": ""} for a in again.split("\n") if a] == [
        each | {"topic": ""} for each in found
    ]
