"""Schemas of a session."""

from __future__ import annotations

from html import unescape

from tests.unit.broker.serving import TIMESTAMP
from tests.unit.console.records.pages.checking import check, offsets_in, token
from tests.unit.console.records.putting import put
from tests.unit.console.site import Site, text_of


def test_schemas_of_the_session_decode_frames(site: Site, topic: str) -> None:
    put(site, topic, [(TIMESTAMP, None, b"\0\0\0\0\x07\x06abc", ())])
    base = f"/topics/{topic}"
    schema = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'
    fields = [*token(site, base), ("schema", schema), ("id", "7"), ("side", "value")]
    assert site.send(f"{base}/records/schemas", fields).status_code == 303
    assert "id 7" in check(site.get(f"{base}/records/schemas"))
    page = unescape(check(site.get(f"{base}/0/0")))
    assert '"id": "abc"' in page
    assert "schema id 7" in page
    page = check(site.get(f"{base}/records?q=value.id%20%3D%20abc"))
    assert offsets_in(page) == [0]
    fields[1] = ("schema", "<script>")
    assert "neither JSON" in text_of(check(site.send(f"{base}/records/schemas", fields), 400))
