"""What retention and compaction have made of logs."""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.broker.serving import (
    TIMESTAMP,
    Serving,
    Wire,
    batch_of,
    create_topic,
    fetch,
    produce,
)

from barnabas.broker.monitoring import log_states as module
from barnabas.broker.monitoring.log_states import log_states
from barnabas.model.observations import LogState


def states(serving: Serving, topic: str) -> list[LogState]:
    return serving.inside(lambda: log_states(serving.broker.partitions, topic))


def test_segments_and_the_time_from_which_retention_counts(
    serving: Serving, wire: Wire, new_name: Callable[[], str]
) -> None:
    name = new_name()
    # The records are of 2023: they stay only if their age does not count.
    create_topic(wire, name, 2, {"segment.bytes": "300", "retention.ms": "-1"})
    for _ in range(4):
        assert produce(wire, name, batch_of(["x" * 100, "y" * 100])).error_code == 0
    first, second = states(serving, name)
    assert (first.partition, second.partition) == (0, 1)
    assert first.segments == 4
    assert (first.start_offset, first.end_offset) == (0, 8)
    assert first.oldest_ms == TIMESTAMP + 1
    assert first.size_bytes > 800
    assert (first.cleaned_offset, first.dirty_bytes, first.is_compacting) == (None, None, False)
    assert (second.segments, second.size_bytes, second.oldest_ms) == (1, 0, None)
    assert fetch(wire, name).high_watermark == 8


def test_what_was_not_compacted_yet(
    serving: Serving, wire: Wire, new_name: Callable[[], str]
) -> None:
    name = new_name()
    create_topic(wire, name, 1, {"segment.bytes": "300", "cleanup.policy": "compact"})
    from barnabas.records.builder import build_batch

    for number in range(4):
        records = build_batch([(TIMESTAMP, b"k", str(number).encode() * 200, ())])
        assert produce(wire, name, records).error_code == 0
    log = serving.broker.partitions[name, 0].log
    [state] = states(serving, name)
    assert state.cleaned_offset == 0
    assert state.dirty_bytes == state.size_bytes
    serving.inside(lambda: setattr(log, "cleaned_offset", 2))
    [state] = states(serving, name)
    assert state.cleaned_offset == 2
    assert state.dirty_bytes == sum(each.size_bytes for each in log.segments[2:])


def test_an_absent_topic_and_a_very_large_one(
    serving: Serving, wire: Wire, new_name: Callable[[], str]
) -> None:
    assert states(serving, "absent") == []
    name = new_name()
    create_topic(wire, name)
    partition = serving.broker.partitions[name, 0]
    many = {(name, number): partition for number in range(module.PARTITIONS_MAX + 1)}
    found = serving.inside(lambda: log_states(many, name))
    assert [each.partition for each in found] == list(range(module.PARTITIONS_MAX))
