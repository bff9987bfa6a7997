"""A data directory whose topics nobody knows: lost coordination, or written by another broker."""

from __future__ import annotations

from pathlib import Path

from tests.unit.broker.serving import (
    Serving,
    batch_of,
    create_topic,
    fetch,
    metadata,
    produce,
    values_of,
)

from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest


def test_lost_coordination_file(tmp_path: Path) -> None:
    """Topics come back under their ids, with their records and in later leader epochs."""
    with Serving(tmp_path) as serving:
        with serving.connect() as wire:
            ids = {name: create_topic(wire, name, partitions=2) for name in ("a", "b", "gone")}
            row = batch_of(["one"], producer_id=2500, producer_epoch=0, base_sequence=0)
            assert produce(wire, "a", row, partition=1).error_code == 0
            epoch = metadata(wire, "a").topics[0].partitions[1].leader_epoch
            request = DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")], timeout_ms=60_000)
            assert wire.ask(request, 6).responses[0].error_code == 0
        serving.stop()
        for file in tmp_path.glob("coordination.sqlite*"):
            file.unlink()
        serving.start()
        with serving.connect() as wire:
            found = {topic.name: topic for topic in metadata(wire, "a", "b").topics}
            assert {name: topic.topic_id for name, topic in found.items()} == {
                name: ids[name] for name in ("a", "b")
            }
            assert len(found["a"].partitions) == 2
            assert found["a"].partitions[1].leader_epoch > epoch
            assert values_of(fetch(wire, "a", partition=1)) == [b"one"]
            assert produce(wire, "a", batch_of(["two"]), partition=1).base_offset == 1
            assert metadata(wire, "gone").topics[0].error_code != 0
            request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
            assert wire.ask(request).producer_id == 3000
        serving.stop()
        serving.start()
        with serving.connect() as wire:
            assert values_of(fetch(wire, "a", partition=1)) == [b"one", b"two"]


def test_a_directory_formatted_by_kraft(tmp_path: Path) -> None:
    """Its node id and cluster id are taken over, the controller's log is not taken for a topic."""
    (tmp_path / "__cluster_metadata-0").mkdir()
    (tmp_path / "meta.properties").write_text(
        "version=1\nnode.id=0\ncluster.id=MkU3OEVBNTcwNTJENDM2Qk\ndirectory.id=abc\n"
    )
    with Serving(tmp_path) as serving, serving.connect() as wire:
        assert serving.broker.cluster.cluster_id == "MkU3OEVBNTcwNTJENDM2Qk"
        create_topic(wire, "t")
        answer = metadata(wire, "t", "__cluster_metadata")
        assert [topic.error_code for topic in answer.topics] == [0, 3]


def test_a_damaged_log_is_a_partition_that_is_offline(tmp_path: Path) -> None:
    """It is taken over with the others, so that it is served once it is repaired."""
    with Serving(tmp_path) as serving:
        with serving.connect() as wire:
            topic_id = create_topic(wire, "a", partitions=2)
            for partition in range(2):
                produce(wire, "a", batch_of(["one", "two"]), partition=partition)
        serving.stop()
        for file in tmp_path.glob("coordination.sqlite*"):
            file.unlink()
        victim = tmp_path / "a-1" / f"{0:020d}.log"
        stored = victim.read_bytes()
        victim.write_bytes(stored[:16] + b"\x05" + stored[17:])
        serving.start()
        with serving.connect() as wire:
            [topic] = metadata(wire, "a").topics
            assert (topic.topic_id, len(topic.partitions)) == (topic_id, 2)
            assert values_of(fetch(wire, "a", partition=0)) == [b"one", b"two"]
            assert fetch(wire, "a", partition=1).error_code != 0
        serving.stop()
        victim.write_bytes(stored)
        serving.start()
        with serving.connect() as wire:
            assert values_of(fetch(wire, "a", partition=1)) == [b"one", b"two"]
            assert produce(wire, "a", batch_of(["three"]), partition=1).base_offset == 2
