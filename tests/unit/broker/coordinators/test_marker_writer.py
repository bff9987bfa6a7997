"""Markers end a transaction on the partitions it wrote to, and say what became of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.coordinated import COORDINATED, TRANSACTION, find, hold_flushes
from tests.unit.broker.coordinators.test_transactions import enlist, init, produce, stable_offset
from tests.unit.broker.serving import Serving, Wire, create_topic
from tests.unit.broker.serving import fetch as fetch_one

from barnabas.broker.coordinators.marker_writer import Ending
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import read_headers
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("markers"), COORDINATED) as running:
        with running.connect() as wire:
            find(wire, "any", TRANSACTION)
        yield running


def marker(producer: tuple[int, int], *topics: tuple[str, int], **more: Any) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[
            WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])
            for topic, partition in topics
        ],
        **{"transaction_result": True, "coordinator_epoch": 0, **more},
    )


def ask(wire: Wire, *markers: WritableTxnMarker) -> list[list[int]]:
    answer = wire.ask(WriteTxnMarkersRequest(markers=list(markers)), 1)
    return [
        [each.error_code for topic in result.topics for each in topic.partitions]
        for result in answer.markers
    ]


def test_each_partition_is_answered(wire: Wire, topic: str) -> None:
    producer = init(wire, f"id-of-{topic}")
    enlist(wire, f"id-of-{topic}", producer, topic, 0)
    assert produce(wire, f"id-of-{topic}", producer, topic, "one") == 0
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    codes = ask(wire, marker(producer, (topic, 0), ("nowhere", 0), (topic, 9)))
    assert [sorted(each) for each in codes] == [[0, missing, missing]]
    assert stable_offset(wire, topic) == 2
    (control,) = read_headers(bytes(fetch_one(wire, topic, 1).records or b""))
    assert control.is_control
    assert (control.producer_id, control.producer_epoch) == producer


def test_old_coordinators_and_old_producers_are_refused(wire: Wire, topic: str) -> None:
    txn_id = f"id-of-{topic}"
    producer = init(wire, txn_id)
    enlist(wire, txn_id, producer, topic, 0)
    assert produce(wire, txn_id, producer, topic, "one") == 0
    assert ask(wire, marker(producer, (topic, 0), coordinator_epoch=5)) == [[0]]
    assert ask(wire, marker(producer, (topic, 0), coordinator_epoch=4)) == [
        [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
    ]
    newer = (producer[0], producer[1] + 1)
    assert ask(wire, marker(newer, (topic, 0), coordinator_epoch=5)) == [[0]]
    assert ask(wire, marker(producer, (topic, 0), coordinator_epoch=5)) == [
        [ErrorCode.INVALID_PRODUCER_EPOCH]
    ]


def test_several_markers_are_answered_in_order(wire: Wire, topic: str) -> None:
    codes = ask(wire, marker((900, 0), (topic, 0)), marker((901, 0)), marker((902, 0), ("no", 0)))
    assert codes == [[0], [], [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]]
    assert ask(wire) == []


def test_done_is_called_when_every_marker_is_safe(tmp_path: Path) -> None:
    options = {**COORDINATED, "log.flush.interval.messages": "1"}
    with Serving(tmp_path, options) as serving, serving.connect() as wire:
        create_topic(wire, "t", 2)
        told: list[dict[TopicPartition, ErrorCode]] = []
        places = [TopicPartition("t", 0), TopicPartition("t", 1)]
        with hold_flushes(serving):
            ending = Ending(7, 0, committed=True, coordinator_epoch=0)
            serving.inside(lambda: serving.broker.marker_writer.write(ending, places, told.append))
            assert serving.broker.partitions[places[0]].log.log_end_offset == 1
            assert told == []
        serving.wait_inside(lambda: told, "the markers are safe")
        assert told == [dict.fromkeys(places, ErrorCode.NONE)]


def test_a_topic_that_is_only_not_known_yet_is_not_taken_for_a_deleted_one(
    serving: Serving, wire: Wire, topic: str
) -> None:
    """A broker that is new in its role may get its metadata later: the tree tells what is gone."""
    broker = serving.broker
    heard: dict[TopicPartition, ErrorCode] = {}

    def write() -> None:
        broker.cluster.remove_topic(topic)
        keys = [TopicPartition(topic, 0), TopicPartition("nowhere", 0)]
        broker.transactions.markers.write(Ending(1, 0, True, 0), keys, heard.update)

    serving.inside(write)
    serving.wait_inside(lambda: len(heard) == 2, "both were looked up")
    assert heard == {
        TopicPartition(topic, 0): ErrorCode.LEADER_NOT_AVAILABLE,
        TopicPartition("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
