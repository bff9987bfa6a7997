"""The cluster view takes over news and never goes back to an older leader epoch."""

from __future__ import annotations

from barnabas.client.metadata import BrokerAddress, ClientMetadata
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import ZERO_UUID, TopicPartition
from barnabas.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ID = bytes(range(16))


def metadata(
    leader: int = 1, epoch: int = 5, *, name: str = "t", topic_id: bytes = ID, controller: int = 2
) -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=n, host=f"h{n}", port=9000 + n) for n in (1, 2)],
        cluster_id="c",
        controller_id=controller,
        topics=[
            MetadataResponseTopic(
                name=name,
                topic_id=topic_id,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=0,
                        leader_id=leader,
                        leader_epoch=epoch,
                        replica_nodes=[1, 2],
                        isr_nodes=[leader],
                    )
                ],
            )
        ],
    )


def view(*responses: MetadataResponse) -> ClientMetadata:
    cluster = ClientMetadata()
    for response in responses:
        cluster.apply(response)
    return cluster


T0 = TopicPartition("t", 0)


def test_a_response_tells_brokers_controller_and_leaders() -> None:
    cluster = view(metadata())
    assert cluster.brokers[2] == BrokerAddress(2, "h2", 9002)
    assert (cluster.cluster_id, cluster.controller_id) == ("c", 2)
    assert cluster.leader(T0) == 1
    assert cluster.topic_id("t") == ID
    assert cluster.topic_id("unknown") == ZERO_UUID
    partition = cluster.partition(T0)
    assert partition is not None
    assert (partition.replicas, partition.isr, partition.error) == ((1, 2), (1,), ErrorCode.NONE)


def test_no_controller_is_none() -> None:
    assert view(metadata(controller=-1)).controller_id is None


def test_an_older_epoch_is_not_believed() -> None:
    assert view(metadata(leader=1, epoch=5), metadata(leader=2, epoch=4)).leader(T0) == 1
    assert view(metadata(leader=1, epoch=5), metadata(leader=2, epoch=6)).leader(T0) == 2


def test_epochs_of_another_topic_of_the_same_name_do_not_count() -> None:
    recreated = metadata(leader=2, epoch=0, topic_id=bytes(15) + b"\7")
    assert view(metadata(leader=1, epoch=5), recreated).leader(T0) == 2


def test_without_epochs_the_last_word_counts() -> None:
    assert view(metadata(leader=1, epoch=5), metadata(leader=2, epoch=-1)).leader(T0) == 2


def test_a_leader_that_is_not_listed_is_no_leader() -> None:
    led, leaderless = view(metadata(leader=7)).by_leader([T0, TopicPartition("x", 0)])
    assert (led, leaderless) == ({}, [T0, TopicPartition("x", 0)])


def test_partitions_are_grouped_under_their_leaders() -> None:
    cluster = view(metadata(leader=1), metadata(leader=2, name="u"))
    u0 = TopicPartition("u", 0)
    assert cluster.by_leader([u0, T0]) == ({2: [u0], 1: [T0]}, [])


def test_only_a_full_answer_removes_topics() -> None:
    cluster = view(metadata(), metadata(name="u"))
    assert sorted(cluster.topics) == ["t", "u"]
    cluster.apply(metadata(name="u"), all_topics=True)
    assert sorted(cluster.topics) == ["u"]


def test_the_generation_grows_with_news_alone() -> None:
    cluster = view(metadata())
    assert cluster.generation == 1
    cluster.apply(metadata())
    assert cluster.generation == 1
    cluster.apply(metadata(leader=2, epoch=6))
    assert cluster.generation == 2
    cluster.apply(metadata(leader=1, epoch=5))
    assert cluster.generation == 2


def test_partitions_epochs_errors_and_racks_can_be_asked_for() -> None:
    response = metadata()
    response.brokers[0].rack = "r1"
    response.topics.append(MetadataResponseTopic(name="gone", error_code=3))
    cluster = view(response)
    assert cluster.partitions_for("t") == (0,)
    assert cluster.partitions_for("gone") is None
    assert cluster.partitions_for("never heard of") is None
    assert (cluster.leader_epoch(T0), cluster.leader_epoch(TopicPartition("t", 9))) == (5, -1)
    assert cluster.error_of("gone") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert cluster.error_of("never heard of") is ErrorCode.NONE
    assert (cluster.rack(1), cluster.rack(2), cluster.rack(3)) == ("r1", None, None)


def test_news_of_a_leader_in_other_answers_counts_if_it_is_newer() -> None:
    cluster = view(metadata(leader=1, epoch=5))
    assert not cluster.update_leader(T0, 2, 5)
    assert cluster.leader(T0) == 1
    assert cluster.update_leader(T0, 2, 6)
    assert (cluster.leader(T0), cluster.leader_epoch(T0), cluster.generation) == (2, 6, 2)
    assert not cluster.update_leader(TopicPartition("other", 0), 2, 6)


def test_news_of_a_leader_that_is_not_known_needs_its_address() -> None:
    cluster = view(metadata(leader=1, epoch=5))
    assert not cluster.update_leader(T0, 7, 6)
    assert cluster.update_leader(T0, 7, 6, BrokerAddress(7, "h7", 9007))
    assert cluster.leader(T0) == 7


def test_forgetting_brokers_keeps_the_topics() -> None:
    cluster = view(metadata())
    cluster.forget_brokers()
    assert (cluster.brokers, cluster.controller_id, cluster.generation) == ({}, None, 2)
    assert cluster.leader(T0) is None
    assert cluster.partitions_for("t") == (0,)
