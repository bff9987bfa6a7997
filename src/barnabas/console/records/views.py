"""Rows as templates show them: decoded, cut to what a page may hold, in the user's time zone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import tzinfo
from typing import Final

from barnabas.console.records.decoding import DECODERS, Decoded, Decoder
from barnabas.console.records.display import (
    SHOWN_MAX,
    WHOLE_MAX,
    count_text,
    hex_dump,
    size_text,
    time_text,
    visible,
    visible_line,
)
from barnabas.console.records.rows import Kind, Outcome, Row
from barnabas.console.records.search import Search

PREVIEW: Final = 300
"""Characters of a value in a list."""
KEY_PREVIEW: Final = 120
HEADERS_SHOWN: Final = 8
HEADER_SHOWN: Final = 4096
"""Bytes of a header on its record's page: there may be a hundred of them."""
HEX_SHOWN: Final = 16 * 1024
_INDENTED: Final = re.compile(r"\n *")


@dataclass(frozen=True, slots=True)
class RowView:
    """One row of a list."""

    kind: str
    partition: int
    offset: str
    place: str
    time: str
    timestamp: int
    key: str
    value: str
    is_cut: bool
    null_key: bool
    tombstone: bool
    how: str
    size: str
    headers: tuple[tuple[str, str], ...]
    more_headers: int
    outcome: str
    note: str


def row_view(row: Row, key: Decoder, value: Decoder, zone: tzinfo) -> RowView:
    """Return what a list shows of a row."""
    last = row.last_offset
    offset = str(row.offset) if last == row.offset else f"{row.offset} to {last}"
    outcome = "" if row.outcome is None else row.outcome.value
    if not row.is_record:
        note = row.note
        if row.kind is Kind.HOLE:
            note = f"{count_text(last - row.offset + 1)} offsets without a record: {row.note}"
        return RowView(
            row.kind.value, row.partition, offset, row.place, time_text(row.timestamp, zone),
            row.timestamp, "", "", False, False, False, "", "", (), 0, outcome,
            visible_line(note),
        )  # fmt: skip
    decoded_key = key(row.key)
    decoded = value(row.value, row.key)
    line = decoded.text or ""
    if decoded.translated:  # such text is indented: a list has it on one line
        line = _INDENTED.sub(" ", line)
    return RowView(
        "record",
        row.partition,
        offset,
        row.place,
        time_text(row.timestamp, zone),
        row.timestamp,
        visible_line((decoded_key.text or "")[:KEY_PREVIEW]),
        visible_line(line[:PREVIEW]),
        len(line) > PREVIEW,
        row.key is None,
        row.value is None,
        DECODERS.get(decoded.kind, decoded.kind),
        size_text(row.size),
        tuple(_header(name, data) for name, data in row.headers[:HEADERS_SHOWN]),
        max(0, len(row.headers) - HEADERS_SHOWN),
        outcome,
        "",
    )


def _header(name: str, data: bytes | None) -> tuple[str, str]:
    shown = "null" if data is None else _text_or_hex(data[:PREVIEW])
    return visible_line(name[:KEY_PREVIEW]), visible_line(shown)


def _text_or_hex(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.hex(" ")


@dataclass(frozen=True, slots=True)
class PartView:
    """A key, value or header of one record's page."""

    title: str
    part: str
    """What the download is called."""
    kind: str
    reason: str
    schema_id: int | None
    text: str
    size: str
    cut: str
    """What is not shown; empty if all is."""
    can_grow: bool
    hex: str
    is_null: bool


def part_view(
    title: str,
    part: str,
    data: bytes | None,
    decoded: Decoded,
    whole: bool,
    limit: int = SHOWN_MAX,
) -> PartView:
    """Return what a record's page shows of one part."""
    limit = WHOLE_MAX if whole else limit
    shown = decoded.shown(limit)
    full = len(decoded.text or "")
    is_cut = full > limit
    size = 0 if data is None else len(data)
    dump = b"" if data is None else data[: min(limit, HEX_SHOWN * (4 if whole else 1))]
    return PartView(
        title,
        part,
        DECODERS.get(decoded.kind, decoded.kind),
        decoded.reason,
        decoded.schema_id,
        visible(shown),
        size_text(size),
        f"the first {size_text(limit)} of {size_text(full)}" if is_cut else "",
        is_cut and not whole and limit == SHOWN_MAX,
        hex_dump(dump),
        data is None,
    )


@dataclass(frozen=True, slots=True)
class Fact:
    """A line about a record or its batch."""

    name: str
    value: str


def facts_of(row: Row, zone: tzinfo) -> list[Fact]:
    """Return what is known of a record besides its key, value and headers."""
    facts = [
        Fact("Partition", str(row.partition)),
        Fact("Offset", str(row.offset)),
        Fact("Time", time_text(row.timestamp, zone)),
        Fact("Time in milliseconds", str(row.timestamp)),
    ]
    batch = row.batch
    if batch is None:
        return facts
    kind = "set by the broker (LogAppendTime)" if batch.is_append_time else "set by the producer"
    facts.append(Fact("The time was", kind))
    if row.outcome is not None:
        texts = {
            Outcome.COMMITTED: "committed",
            Outcome.ABORTED: "aborted: readers of committed records never see it",
            Outcome.OPEN: "open: readers of committed records wait for its end",
        }
        facts.append(Fact("Transaction", texts[row.outcome]))
    facts += [
        Fact("Batch", f"offsets {batch.base_offset} to {batch.last_offset}"),
        Fact("Records in the batch", "unknown" if batch.count < 0 else str(batch.count)),
        Fact("Size of the batch", size_text(batch.size)),
        Fact("Compression", batch.codec.name.lower()),
        Fact("Format (magic)", str(batch.magic)),
        Fact("Leader epoch", str(batch.leader_epoch)),
    ]
    if batch.producer_id >= 0:
        facts += [
            Fact("Producer id", str(batch.producer_id)),
            Fact("Producer epoch", str(batch.producer_epoch)),
            Fact("Sequence", f"{batch.base_sequence} to {batch.last_sequence}"),
            Fact("Transactional", "yes" if batch.is_transactional else "no"),
        ]
    facts.append(Fact("CRC", f"{batch.crc & 0xFFFFFFFF:#010x}"))
    horizon = batch.delete_horizon_ms
    if horizon is not None:
        facts.append(Fact("Tombstones go after", time_text(horizon, zone)))
    return facts


def progress_text(search: Search, zone: tzinfo, finished: bool) -> str:
    """Return how far a search came."""
    looked = f"{count_text(search.records)} records ({size_text(search.size)})"
    if finished:
        return f"Searched all of it: {looked}."
    left = search.size_left
    about = f" of about {size_text(search.size + left)}" if search.size else ""
    until = ""
    if search.until_ms >= 0:
        word = "up to" if search.forward else "back to"
        until = f", {word} {time_text(search.until_ms, zone)}"
    return (
        f"Searched {size_text(search.size)}{about}: {count_text(search.records)} records{until}. "
        f"{count_text(search.left)} offsets are not searched yet."
    )
