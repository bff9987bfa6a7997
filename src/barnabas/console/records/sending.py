"""Records to send: typed into a form, sent again, imported, or brought back from dead letters.

First a plan is made, which is shown; what is sent is the plan.
"""

from __future__ import annotations

import binascii
import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from barnabas.console.records.display import visible
from barnabas.console.records.json_text import NotJsonError, parse_json
from barnabas.console.records.rows import Headers, Row
from barnabas.kernels import murmur2
from barnabas.records.builder import build_batch

RECORD_MAX: Final = 1 << 20
RECORDS_MAX: Final = 1000
BATCH_BYTES: Final = 512 * 1024
FORMATS: Final = {
    "text": "text",
    "json": "JSON",
    "hex": "hexadecimal",
    "null": "null",
}


class SendingError(ValueError):
    """A record that cannot be sent; the text says which part, and why."""


@dataclass(frozen=True, slots=True)
class Draft:
    """One record to send."""

    topic: str
    partition: int | None
    """None: chosen by the key, or in turn."""
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None
    origin: str = ""
    """Where it comes from, for the preview."""
    problem: str = ""
    """Why it cannot be sent; it is left out then."""

    @property
    def size(self) -> int:
        return len(self.key or b"") + len(self.value or b"")


def read_payload(part: str, text: str, how: str) -> bytes | None:
    """Return the bytes of a form's field; raise SendingError."""
    match how:
        case "null":
            return None
        case "text":
            data = text.encode(errors="replace")
        case "json":
            try:
                parse_json(text)
            except NotJsonError as failure:
                raise SendingError(f"{part} is not JSON: {failure}") from None
            data = text.encode(errors="replace")
        case "hex":
            try:
                data = bytes.fromhex("".join(text.split()).removeprefix("0x"))
            except (ValueError, binascii.Error):
                raise SendingError(
                    f"{part} must be pairs of hexadecimal digits, as in 00 ff"
                ) from None
        case _:
            raise SendingError(f"{part}: format {how[:20]!r} must be one of {', '.join(FORMATS)}")
    if len(data) > RECORD_MAX:
        raise SendingError(f"{part} has {len(data)} bytes: the console sends at most {RECORD_MAX}")
    return data


def read_headers(text: str) -> Headers:
    """Return headers from lines `name: value`, or from a list of JSON's [name, value] pairs."""
    stripped = text.strip()
    if stripped.startswith("["):
        return _json_headers(stripped)
    headers: list[tuple[str, bytes | None]] = []
    for number, line in enumerate(stripped.splitlines(), 1):
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise SendingError(f"headers, line {number}: must be name: value")
        headers.append((name.strip(), value.strip().encode(errors="replace")))
    return tuple(headers)


def _json_headers(text: str) -> Headers:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as failure:
        raise SendingError(f"headers are not JSON: {failure}") from None
    headers: list[tuple[str, bytes | None]] = []
    for pair in found:
        if (
            not isinstance(pair, list)
            or len(pair) != 2
            or not isinstance(pair[0], str)
            or not isinstance(pair[1], str | None)
        ):
            raise SendingError('headers: must be pairs such as ["name", "value"]')
        value = None if pair[1] is None else pair[1].encode(errors="replace")
        headers.append((pair[0], value))
    return tuple(headers)


def show_headers(headers: Headers) -> str:
    """Return headers as the form reads them; values that are not text lose their bytes."""
    pairs = [
        [name, None if value is None else value.decode(errors="replace")] for name, value in headers
    ]
    if not pairs:
        return ""
    text = json.dumps(pairs, ensure_ascii=False)
    # In escape sequences, what nobody can see stays what it is.
    return text if visible(text) == text else json.dumps(pairs)


def is_text(headers: Headers) -> bool:
    """Return whether a form can show the headers without loss."""
    try:
        return all(value is None or value.decode() is not None for _, value in headers)
    except UnicodeDecodeError:
        return False


def send_again(
    rows: Iterable[Row], topic: str, source: str, *, keep_partition: bool
) -> list[Draft]:
    """Return the plan to send rows to a topic as they are."""
    return [
        Draft(
            topic,
            row.partition if keep_partition else None,
            row.key,
            row.value,
            row.headers,
            origin=f"{source}-{row.partition} offset {row.offset}",
        )
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a dead letter came from."""

    topic: str
    partition: int | None
    offset: int | None


_ORIGINS: Final = (
    # Topic, partition and offset: Kafka Connect, Spring for Apache Kafka (both of its spellings),
    # and Kafka Streams.
    ("__connect.errors.topic", "__connect.errors.partition", "__connect.errors.offset"),
    ("kafka_dlt-original-topic", "kafka_dlt-original-partition", "kafka_dlt-original-offset"),
    ("kafka_original-topic", "kafka_original-partition", "kafka_original-offset"),
    ("__streams.errors.topic", "__streams.errors.partition", "__streams.errors.offset"),
)
ADDED_PREFIXES: Final = (
    "__connect.errors.",
    "kafka_dlt-",
    "kafka_original-",
    "kafka_exception-",
    "__streams.errors.",
)


def origin_of(headers: Headers) -> Origin | None:
    """Return where a dead letter came from, by the headers of what put it there."""
    found = dict(headers)
    for topic_name, partition_name, offset_name in _ORIGINS:
        topic = found.get(topic_name)
        if not topic:
            continue
        try:
            name = topic.decode()
        except UnicodeDecodeError:
            continue
        return Origin(name, _number(found.get(partition_name)), _number(found.get(offset_name)))
    return None


def _number(data: bytes | None) -> int | None:
    """Return a number in a header: digits, or 4 or 8 bytes as Java's serializers write them."""
    if not data:
        return None
    if data.isdigit() and len(data) <= 19:
        return int(data)
    layouts = {4: ">i", 8: ">q"}
    layout = layouts.get(len(data))
    if layout is None:
        return None
    number: int = struct.unpack(layout, data)[0]
    return number if number >= 0 else None


def bring_back(rows: Iterable[Row], source: str, *, keep_partition: bool) -> list[Draft]:
    """Return the plan to send dead letters where they came from, without the added headers."""
    drafts = []
    for row in rows:
        origin = origin_of(row.headers)
        place = f"{source}-{row.partition} offset {row.offset}"
        if origin is None:
            problem = "no header says where it came from"
            drafts.append(
                Draft("", None, row.key, row.value, row.headers, origin=place, problem=problem)
            )
            continue
        headers = tuple(
            (name, value) for name, value in row.headers if not name.startswith(ADDED_PREFIXES)
        )
        problem = "it came from this same topic" if origin.topic == source else ""
        drafts.append(
            Draft(
                origin.topic,
                origin.partition if keep_partition else None,
                row.key,
                row.value,
                headers,
                origin=place,
                problem=problem,
            )
        )
    return drafts


def choose_partitions(drafts: Sequence[Draft], counts: dict[str, int]) -> list[Draft]:
    """Return drafts with their partitions: by the key as every client does, else in turn."""
    chosen = []
    turn = 0
    for draft in drafts:
        if draft.problem:
            chosen.append(draft)
            continue
        count = counts.get(draft.topic, 0)
        if count == 0:
            problem = f"there is no topic {draft.topic}, or it may not be seen"
            chosen.append(replace(draft, problem=problem))
        elif draft.partition is not None:
            problem = ""
            if not 0 <= draft.partition < count:
                problem = f"partition {draft.partition}: {draft.topic} has 0 to {count - 1}"
            chosen.append(replace(draft, problem=problem))
        elif draft.key is not None:
            number = (murmur2(draft.key) & 0x7FFFFFFF) % count
            chosen.append(replace(draft, partition=number))
        else:
            chosen.append(replace(draft, partition=turn % count))
            turn += 1
    return chosen


Batch = tuple[str, int, list[Draft]]


def batches_of(drafts: Iterable[Draft]) -> list[Batch]:
    """Return drafts by topic and partition, in batches that any topic accepts; in their order."""
    batches: list[Batch] = []
    open_batches: dict[tuple[str, int], tuple[Batch, int]] = {}
    for draft in drafts:
        if draft.problem or draft.partition is None:
            continue
        place = draft.topic, draft.partition
        size = draft.size + sum(len(name) + len(data or b"") for name, data in draft.headers) + 100
        known = open_batches.get(place)
        if known is None or known[1] + size > BATCH_BYTES:
            batch: Batch = (*place, [])
            batches.append(batch)
            known = (batch, 0)
        known[0][2].append(draft)
        open_batches[place] = (known[0], known[1] + size)
    return batches


def encode_drafts(drafts: Iterable[Draft], now_ms: int) -> bytes:
    """Return the batch of some drafts; those without a time get this one."""
    return build_batch(
        [
            (
                now_ms if draft.timestamp is None else draft.timestamp,
                draft.key,
                draft.value,
                draft.headers,
            )
            for draft in drafts
        ]
    )
