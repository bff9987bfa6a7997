"""The shape of compiled decoders: straight lines, runs of fields read at once, honest labels."""

from __future__ import annotations

from tests.unit.wire.samples import all_versions

from barnabas.wire.decoder import DecoderSource, smallest_struct, smallest_value
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, PartitionData
from barnabas.wire.messages.heartbeat import HeartbeatRequest


def test_neighbouring_fields_of_fixed_size_are_read_at_once() -> None:
    text = DecoderSource(FetchRequest, 11).text
    # The request's head with the count of topics, a topic's count, a partition, and so on.
    assert "m.session_epoch, n" in text
    head = next(line for line in text.splitlines() if "m.replica_id" in line)
    assert head.count("unpack") == 1
    assert "m.max_wait_ms" in head


def test_every_line_has_a_label() -> None:
    for cls, version in all_versions():
        source = DecoderSource(cls, version)
        assert len(source.labels) == len(source.text.splitlines())


def test_labels_name_the_field_that_a_line_reads() -> None:
    source = DecoderSource(HeartbeatRequest, 3)
    lines = source.text.splitlines()
    labels = dict(zip(lines, source.labels, strict=True))
    assert [label for line, label in labels.items() if "m.member_id =" in line] == ["member_id"]


def test_the_smallest_size_bounds_counts() -> None:
    assert smallest_value("int64", flexible=True) == 8
    assert [smallest_value("string", flexible) for flexible in (False, True)] == [2, 1]
    assert [smallest_value("records", flexible) for flexible in (False, True)] == [4, 1]
    assert smallest_struct(FetchPartition, 0, flexible=False) == 4 + 8 + 4
    assert smallest_struct(FetchPartition, 12, flexible=True) == 4 + 4 + 8 + 4 + 8 + 4 + 1
    assert smallest_struct(PartitionData, 4, flexible=False) == 4 + 2 + 8 + 8 + 4 + 4
