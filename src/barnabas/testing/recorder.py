"""What is in a cluster, for the report of a failed test: topics, last records, groups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from barnabas.admin.offsets import OffsetSpec
from barnabas.blocking.admin import KafkaAdminClient
from barnabas.blocking.consumer import KafkaConsumer
from barnabas.kernels import ConsumerRecord
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    from barnabas.testing.cluster import Cluster

_TIMEOUT_MS = 5_000
_WIDTH_MAX = 120
_GROUPS_MAX = 20
_TOPICS_MAX = 50


class Extent(NamedTuple):
    """A partition's first offset, and that after its last record."""

    begin: int
    end: int


def describe_cluster(cluster: Cluster, *, last: int, since_ms: int = 0) -> str:
    """Return topics with their last records, and groups; empty without a record since a time.

    Topics whose newest record is older are left out. If brokers cannot be asked, the description
    says so.
    """
    if not cluster.running:
        return "could not be read: no broker is running"
    options = {
        **cluster.client_options(),
        "bootstrap.timeout.ms": _TIMEOUT_MS,
        "request.timeout.ms": _TIMEOUT_MS,
        "default.api.timeout.ms": _TIMEOUT_MS,
    }
    try:
        with KafkaAdminClient(**options) as admin:
            partitions = _partitions_since(admin, since_ms)
            if not partitions:
                return ""
            topics = _topics(options, partitions, last)
            return "\n".join([*topics, *_groups(admin, partitions)])
    except Exception as failure:  # noqa: BLE001  it must not take the place of the test's failure
        return f"could not be read: {str(failure) or repr(failure)}"


def _partitions_since(admin: KafkaAdminClient, since_ms: int) -> dict[TopicPartition, Extent]:
    """Return the partitions of topics with a record that is not older."""
    names = [name for name in admin.list_topics() if not name.startswith("__")]
    described = admin.describe_topics(names) if names else []
    every = [
        TopicPartition(topic["name"], partition["partition_index"])
        for topic in described
        for partition in topic["partitions"]
    ]
    if not every:
        return {}
    newest = admin.list_partition_offsets(dict.fromkeys(every, OffsetSpec.MAX_TIMESTAMP))
    begins = admin.list_partition_offsets(dict.fromkeys(every, OffsetSpec.EARLIEST))
    ends = admin.list_partition_offsets(dict.fromkeys(every, OffsetSpec.LATEST))
    recent = {each.topic for each in every if (newest[each].timestamp or -1) >= max(since_ms, 0)}
    return {
        each: Extent(begins[each].offset, ends[each].offset)
        for each in sorted(every)
        if each.topic in recent
    }


def _topics(
    options: dict[str, object], partitions: dict[TopicPartition, Extent], last: int
) -> Iterable[str]:
    names = sorted({each.topic for each in partitions})
    records = _last_records(options, partitions, last) if last else {}
    for name in names[:_TOPICS_MAX]:
        extents = {
            each.partition: extent for each, extent in partitions.items() if each.topic == name
        }
        spans = ", ".join(
            f"{index}: {extent.begin}–{extent.end}" for index, extent in extents.items()
        )
        total = sum(extent.end - extent.begin for extent in extents.values())
        yield f"topic {name}: {total} offsets (partition: first–next; {spans})"
        found = records.get(name, [])
        if found:
            yield from (f"  {line}" for line in _table(found[-last:]))
    if len(names) > _TOPICS_MAX:
        yield f"and {len(names) - _TOPICS_MAX} more topics"


def _last_records(
    options: dict[str, object], partitions: dict[TopicPartition, Extent], last: int
) -> dict[str, list[ConsumerRecord]]:
    """Return the last records of each partition, by topic, in order of their timestamps."""
    missing = {each for each, extent in partitions.items() if extent.end > extent.begin}
    found: dict[str, list[ConsumerRecord]] = {}
    if not missing:
        return found
    with KafkaConsumer(**options, group_id=None) as consumer:
        consumer.assign(missing)
        for each in missing:
            begin, end = partitions[each]
            consumer.seek(each, max(begin, end - last))
        while missing:
            polled = consumer.poll(timeout_ms=_TIMEOUT_MS)
            for each, records in polled.items():
                found.setdefault(each.topic, []).extend(records)
            behind = {each for each in missing if consumer.position(each) < partitions[each].end}
            if not polled and behind == missing:
                break  # the rest does not come in time: what is here is shown
            missing = behind
    for records in found.values():
        records.sort(key=lambda record: (record.timestamp, record.partition, record.offset))
    return found


def _table(records: Sequence[ConsumerRecord]) -> Iterable[str]:
    for record in records:
        time = datetime.fromtimestamp(record.timestamp / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
        headers = ", ".join(f"{name}={readable(value)}" for name, value in record.headers)
        yield (
            f"{record.partition}:{record.offset} {time} {readable(record.key)} →"
            f" {readable(record.value)}{f' [{headers}]' if headers else ''}"
        )


def _groups(admin: KafkaAdminClient, partitions: dict[TopicPartition, Extent]) -> Iterable[str]:
    groups = sorted(group["group_id"] for group in admin.list_groups())
    for group in groups[:_GROUPS_MAX]:
        committed = admin.list_group_offsets(group)[group]
        positions = [
            f"{each.topic}:{each.partition} at {committed[each].offset} of {extent.end}"
            for each, extent in partitions.items()
            if each in committed and committed[each].offset >= 0
        ]
        if positions:
            yield f"group {group}: {', '.join(positions)}"


def readable(data: bytes | None) -> str:
    """Return a key or a value as people read it: its text if it is one, else hexadecimal digits."""
    if data is None:
        return "null"
    text = _text_of(bytes(data))
    return text if len(text) <= _WIDTH_MAX else f"{text[: _WIDTH_MAX - 1]}… ({len(data)} bytes)"


def _text_of(data: bytes) -> str:
    if data[:1] == b"\x00" and len(data) > 5:  # framed by a schema registry's serializer
        schema = int.from_bytes(data[1:5], "big")
        return f"schema {schema}: {_text_of(data[5:])}"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data[:_WIDTH_MAX].hex()}"
    if text.isprintable():
        return text
    if all(letter.isprintable() or letter.isspace() for letter in text):
        return json.dumps(text, ensure_ascii=False)
    return f"0x{data[:_WIDTH_MAX].hex()}"
