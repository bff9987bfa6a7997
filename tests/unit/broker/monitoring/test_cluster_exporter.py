"""The set of kafka_exporter from any one broker, complete, or with the name of who is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.exposed import Exposed, parse
from tests.unit.broker.monitoring.http_client import get
from tests.unit.broker.serving import wait_for

from barnabas.broker.monitoring import cluster_exporter
from barnabas.broker.monitoring.cluster_exporter import ClusterExporter, ClusterReading
from barnabas.metadata.cluster_view import BrokerView, ClusterView, PartitionView, TopicView
from barnabas.metrics.exposition import Exposition, Form
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import EARLIEST
from barnabas.testing import Cluster
from barnabas.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.wire.messages.consumer_group_describe import DescribedGroup as NewerGroup
from barnabas.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from barnabas.wire.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

ORDERS_ID = bytes(range(16))
MEMBER = DescribedGroupMember(
    member_id="m",
    group_instance_id=None,
    client_id="c",
    client_host="h",
    member_metadata=b"",
    member_assignment=b"",
)


def view_of(leaders: Iterable[int], *, replicas: tuple[int, ...] = (1, 2)) -> ClusterView:
    """Return two brokers and a topic whose partitions they lead."""
    view = ClusterView()
    for number in (1, 2):
        view.brokers[number] = BrokerView(number, {"IN": (f"host{number}", 9090 + number)}, None)
    partitions = [PartitionView(leader, 0, (leader,), replicas) for leader in leaders]
    view.put_topic(TopicView("orders", ORDERS_ID, partitions))
    return view


class Brokers:
    """Brokers that answer from a table: partition n ends at 100 + n and starts at n."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, str]] = []
        self.groups = {1: [("readers", "classic"), ("newer", "consumer")], 2: []}
        self.refusals: dict[tuple[int, type], Exception] = {}
        self.silent: set[int] = set()

    async def ask(self, broker_id: int, request: Any, timeout_ms: int) -> Any:
        self.asked.append((broker_id, type(request).__name__))
        assert 0 < timeout_ms <= cluster_exporter.TIMEOUT_S * 1000
        if broker_id in self.silent:
            await asyncio.Event().wait()
        refusal = self.refusals.get((broker_id, type(request)))
        if refusal is not None:
            raise refusal
        if isinstance(request, ListOffsetsRequest):
            return ListOffsetsResponse(topics=[self._offsets(each) for each in request.topics])
        if isinstance(request, ListGroupsRequest):
            return ListGroupsResponse(
                groups=[
                    ListedGroup(group_id=name, protocol_type="consumer", group_type=kind)
                    for name, kind in self.groups[broker_id]
                ]
            )
        if isinstance(request, OffsetFetchRequest):
            return OffsetFetchResponse(groups=[self._commits(each) for each in request.groups])
        if isinstance(request, DescribeGroupsRequest):
            described = [DescribedGroup(group_id=name, members=[MEMBER]) for name in request.groups]
            return DescribeGroupsResponse(groups=described)
        assert isinstance(request, ConsumerGroupDescribeRequest)
        response = ConsumerGroupDescribeResponse()
        response.groups = [NewerGroup(group_id=name, members=[]) for name in request.group_ids]
        return response

    def _offsets(self, topic: Any) -> ListOffsetsTopicResponse:
        found = []
        for each in topic.partitions:
            number = each.partition_index
            offset = number if each.timestamp == EARLIEST else 100 + number
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER if number == 9 else 0
            found.append(
                ListOffsetsPartitionResponse(
                    partition_index=number, offset=offset, error_code=int(code)
                )
            )
        return ListOffsetsTopicResponse(name=topic.name, partitions=found)

    def _commits(self, group: Any) -> OffsetFetchResponseGroup:
        """Committed offset 40 of partition 0, 150 of 1, and none of 2."""
        partitions = [
            OffsetFetchResponsePartitions(partition_index=number, committed_offset=offset)
            for number, offset in ((0, 40), (1, 150), (2, -1))
        ]
        topic = OffsetFetchResponseTopics(topic_id=ORDERS_ID, partitions=partitions)
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=[topic])


def exposed(reading: ClusterReading) -> Exposed:
    registry = Registry()
    registry.add_collector(reading)
    exposition = Exposition(registry, Form(), lambda: 0.0, comments=reading.comments())
    found = parse(b"".join(exposition.chunks()).decode())
    assert exposition.failures == []
    return found


def read(view: ClusterView, brokers: Brokers) -> Exposed:
    return exposed(asyncio.run(ClusterExporter(view, brokers.ask).read()))


def test_every_metric_of_kafka_exporter() -> None:
    found = read(view_of([1, 2, 1]), Brokers())
    assert found.value("kafka_brokers") == 2
    assert found.value("kafka_broker_info", id="2", address="host2:9092") == 1
    assert found.value("kafka_topic_partitions", topic="orders") == 3
    second = {"topic": "orders", "partition": "1"}
    assert found.value("kafka_topic_partition_current_offset", **second) == 101
    assert found.value("kafka_topic_partition_oldest_offset", **second) == 1
    assert found.value("kafka_topic_partition_leader", **second) == 2
    assert found.value("kafka_topic_partition_replicas", **second) == 2
    assert found.value("kafka_topic_partition_in_sync_replica", **second) == 1
    assert found.value("kafka_topic_partition_under_replicated_partition", **second) == 1
    assert found.value("kafka_topic_partition_leader_is_preferred", **second) == 0
    group = {"consumergroup": "readers", "topic": "orders"}
    assert found.value("kafka_consumergroup_current_offset", **group, partition="0") == 40
    assert found.value("kafka_consumergroup_lag", **group, partition="0") == 60
    assert found.value("kafka_consumergroup_current_offset_sum", **group) == 190
    assert found.value("kafka_consumergroup_members", consumergroup="readers") == 1
    assert found.value("kafka_consumergroup_members", consumergroup="newer") == 0
    assert found.comments == []


def test_a_lag_may_be_negative_and_a_partition_without_commit_has_none() -> None:
    found = read(view_of([1, 2, 1]), Brokers())
    group = {"consumergroup": "readers", "topic": "orders"}
    assert found.value("kafka_consumergroup_lag", **group, partition="1") == -49
    assert found.value("kafka_consumergroup_lag_sum", **group) == 11
    lags = found.series("kafka_consumergroup_lag")
    assert {dict(labels)["partition"] for labels in lags} == {"0", "1"}


def test_many_partitions_are_asked_for_in_pieces() -> None:
    brokers = Brokers()
    view = ClusterView()
    view.brokers[1] = BrokerView(1, {"IN": (None, 9092)}, None)
    partitions = [PartitionView(1, 0, (1,), (1,))] * 9
    for number in range(200):
        view.put_topic(TopicView(f"t{number}", number.to_bytes(16, "big"), partitions))
    found = read(view, brokers)
    asked = brokers.asked.count((1, "ListOffsetsRequest"))
    assert asked == 2 * -(-1800 // cluster_exporter.PARTITIONS_PER_REQUEST)
    assert len(found.series("kafka_topic_partition_current_offset")) == 1800


def test_a_broker_that_refuses_is_named_and_the_others_are_shown() -> None:
    brokers = Brokers()
    refusal = RequestError(ErrorCode.BROKER_NOT_AVAILABLE, "broker 2 is not alive")
    brokers.refusals[2, ListOffsetsRequest] = refusal
    found = read(view_of([1, 2, 1]), brokers)
    assert found.comments == [f"# broker 2 is missing: {refusal}"]
    assert found.value("barnabas_cluster_scrape_broker_answered", broker="1") == 1
    assert found.value("barnabas_cluster_scrape_broker_answered", broker="2") == 0
    offsets = found.series("kafka_topic_partition_current_offset")
    assert {dict(labels)["partition"] for labels in offsets} == {"0", "2"}
    assert len(found.series("kafka_topic_partition_leader")) == 3


def test_a_broker_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_exporter, "TIMEOUT_S", 0.01)
    brokers = Brokers()
    brokers.silent.add(2)
    found = read(view_of([1, 2]), brokers)
    assert found.comments == ["# broker 2 is missing: no answer in 0.01 s"]
    assert found.value("kafka_topic_partitions", topic="orders") == 2


@pytest.mark.parametrize("request_type", [ListGroupsRequest, OffsetFetchRequest])
def test_groups_that_are_not_available_leave_the_topics(request_type: type) -> None:
    brokers = Brokers()
    brokers.refusals[1, request_type] = RequestError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    found = read(view_of([1, 2]), brokers)
    assert len(found.series("kafka_topic_partition_current_offset")) == 2
    assert "kafka_consumergroup_lag" not in found
    assert found.value("barnabas_cluster_scrape_broker_answered", broker="1") == 0


def test_a_partition_that_has_moved_is_named() -> None:
    found = read(view_of([1] * 10), Brokers())
    reason = "partition orders-9: NOT_LEADER_OR_FOLLOWER"
    assert found.comments == [f"# broker 1 is missing: {reason}"]
    assert len(found.series("kafka_topic_partition_current_offset")) == 9


def test_a_cluster_of_no_broker_is_empty() -> None:
    found = read(ClusterView(), Brokers())
    assert found.value("kafka_brokers") == 0


def scrape(cluster: Cluster, number: int) -> Exposed:
    port = int(cluster.metrics_url(number).split(":")[2].split("/")[0])
    return parse(get(("127.0.0.1", port), "/metrics/cluster").text)


def has_all_lags(cluster: Cluster, number: int) -> bool:
    return len(scrape(cluster, number).series("kafka_consumergroup_lag")) == 6


def test_any_broker_of_a_real_cluster_shows_all_of_it() -> None:
    options = {"offsets.topic.num.partitions": 3, "offsets.topic.replication.factor": 3}
    with Cluster(brokers=3, metrics=True, options=options) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("orders", 6, 3)])["orders"].result(60)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        for number in range(600):
            producer.produce("orders", b"x", partition=number % 6)
        producer.flush(60)
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "readers"})
        commits = [TopicPartition("orders", number, 10 * number) for number in range(6)]
        consumer.commit(offsets=commits, asynchronous=False)
        consumer.close()
        for number in range(3):
            wait_for(partial(has_all_lags, cluster, number), "all partitions have a lag")
            found = scrape(cluster, number)
            assert found.comments == []
            assert found.value("kafka_brokers") == 3
            ends = found.series("kafka_topic_partition_current_offset")
            of_orders = {
                dict(labels)["partition"]: end
                for labels, end in ends.items()
                if dict(labels)["topic"] == "orders"
            }
            assert of_orders == {str(each): 100 for each in range(6)}
            group = {"consumergroup": "readers", "topic": "orders"}
            assert found.value("kafka_consumergroup_lag", **group, partition="3") == 70
            assert found.value("kafka_consumergroup_lag_sum", **group) == 600 - 150
            assert found.value("kafka_consumergroup_current_offset_sum", **group) == 150
