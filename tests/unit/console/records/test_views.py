"""Rows as templates show them."""

from __future__ import annotations

from datetime import UTC

from barnabas.console.records.decoding import Decoder
from barnabas.console.records.rows import Kind, Outcome, Row
from barnabas.console.records.scanning import Scanned
from barnabas.console.records.search import Search
from barnabas.console.records.views import (
    HEADERS_SHOWN,
    PREVIEW,
    facts_of,
    part_view,
    progress_text,
    row_view,
)
from barnabas.records.batch import read_header
from barnabas.records.builder import build_batch

DECODER = Decoder("t", "value")


def record(value: bytes | None, **more) -> Row:
    return Row(Kind.RECORD, 1, 7, 0, 7, b"k", value, **more)


def test_a_list_shows_the_beginning_of_a_value() -> None:
    shown = row_view(record(b"x" * 1000 + b"\0"), DECODER, DECODER, UTC)
    assert (shown.value, shown.is_cut) == ("x" * PREVIEW, True)
    shown = row_view(record(b"a\n\tb"), DECODER, DECODER, UTC)
    assert (shown.value, shown.is_cut, shown.place) == ("a␊␉b", False, "1:7")
    shown = row_view(record(None), DECODER, DECODER, UTC)
    assert shown.tombstone


def test_headers_are_cut() -> None:
    headers = tuple((f"h{each}", b"\xff" if each else None) for each in range(HEADERS_SHOWN + 3))
    shown = row_view(record(b"", headers=headers), DECODER, DECODER, UTC)
    assert shown.headers[:2] == (("h0", "null"), ("h1", "ff"))
    assert (len(shown.headers), shown.more_headers) == (HEADERS_SHOWN, 3)


def test_holes_say_how_many_offsets_they_have() -> None:
    hole = Row(Kind.HOLE, 0, 5, 0, 1004, note="compacted away")
    shown = row_view(hole, DECODER, DECODER, UTC)
    assert shown.offset == "5 to 1004"
    assert "1\u202f000 offsets" in shown.note


def test_parts_are_cut_and_can_grow() -> None:
    data = b"x" * 3_000_000
    shown = part_view("Value", "value", data, DECODER(data), False)
    assert (len(shown.text), shown.can_grow) == (65_536, True)
    whole = part_view("Value", "value", data, DECODER(data), True)
    assert (len(whole.text), whole.can_grow) == (1 << 20, False)
    assert "3.0 MB" in whole.cut
    assert part_view("Key", "key", None, DECODER(None), False).is_null


def test_facts_of_a_batch() -> None:
    batch = build_batch(
        [(5, None, b"v", ())], "zstd", producer_id=9, producer_epoch=2, base_sequence=4,
        transactional=True, base_offset=7,
    )  # fmt: skip
    row = record(b"v", batch=read_header(batch), outcome=Outcome.OPEN)
    facts = {each.name: each.value for each in facts_of(row, UTC)}
    assert facts["Compression"] == "zstd"
    assert facts["Producer id"] == "9"
    assert facts["Sequence"] == "4 to 4"
    assert facts["Transaction"].startswith("open")
    assert facts["Batch"] == "offsets 7 to 7"


def test_progress_says_what_was_searched_and_what_was_not() -> None:
    search = Search({0: (0, 1000)}, width=100)
    window = search.next_window()
    assert window is not None
    search.scanned(window, Scanned([], 900, 1000, 60_000, 90_000, 100, 3_000_000))
    text = progress_text(search, UTC, False)
    assert "Searched 3.0 MB of about 30.0 MB: 100 records, back to 1970-01-01 00:01" in text
    assert "900 offsets are not searched yet" in text
    assert "all of it" in progress_text(search, UTC, True)
