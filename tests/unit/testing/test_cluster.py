"""A cluster for tests: up fast, back with its data, gone without a trace."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.admin.topics import NewTopic, create_topics, describe_topics
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import ConnectError
from barnabas.model.errors import ConfigError, InvalidValueError
from barnabas.testing import Cluster
from barnabas.testing.cluster import Member


def topics_of(bootstrap: str) -> list[str]:
    async def ask() -> list[str]:
        async with ClusterClient(bootstrap) as client:
            return [view.name for view in await describe_topics(client, None)]

    return asyncio.run(ask())


def answers(bootstrap: str) -> bool:
    async def ask() -> bool:
        async with ClusterClient(bootstrap) as client:
            try:
                await client.refresh()
            except ConnectError:
                return False
            return True

    return asyncio.run(ask())


def create(bootstrap: str, name: str) -> None:
    async def ask() -> None:
        async with ClusterClient(bootstrap) as client:
            [created] = await create_topics(client, [NewTopic(name)])
            assert created.error is None

    asyncio.run(ask())


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_a_cluster_comes_back_on_its_port_with_its_data(process: bool) -> None:
    with Cluster(process=process) as cluster:
        bootstrap, directory = cluster.bootstrap, cluster.data_dir
        create(bootstrap, "kept")
        cluster.stop()
        assert not answers(bootstrap)
        cluster.start()
        assert cluster.bootstrap == bootstrap
        assert topics_of(bootstrap) == ["kept"]
        cluster.kill()
        assert not answers(bootstrap)
        cluster.start()
        assert topics_of(bootstrap) == ["kept"]
        assert directory.is_dir()
    assert not directory.exists()


@pytest.mark.parametrize(("flushed", "kept"), [("1", 3), ("1000", 0)])
def test_killing_a_broker_in_a_thread_takes_what_was_not_flushed(flushed: str, kept: int) -> None:
    with Cluster(options={"log.flush.interval.messages": flushed}) as cluster:
        create(cluster.bootstrap, "t")
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
        for number in range(3):
            producer.produce("t", value=f"value {number}")
        assert producer.flush(60) == 0
        cluster.kill()
        cluster.start()
        consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g"})
        assert consumer.get_watermark_offsets(TopicPartition("t", 0), timeout=60) == (0, kept)
        consumer.close()


def test_two_clusters_live_side_by_side() -> None:
    with Cluster() as one, Cluster() as two:
        create(one.bootstrap, "one")
        assert topics_of(one.bootstrap) == ["one"]
        assert topics_of(two.bootstrap) == []


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_options_reach_the_broker(process: bool) -> None:
    with Cluster(options={"num.partitions": 4}, process=process) as cluster:
        create(cluster.bootstrap, "four")

        async def ask() -> int:
            async with ClusterClient(cluster.bootstrap) as client:
                [view] = await describe_topics(client, ["four"])
                return len(view.partitions)

        assert asyncio.run(ask()) == 4


def test_a_wrong_option_is_told_and_leaves_nothing_behind() -> None:
    cluster = Cluster(options={"num.partitions": "many"})
    with pytest.raises(ConfigError, match=r"num\.partitions"), cluster:
        pass
    assert cluster._directory is None


def test_processes_share_a_tree_of_this_one() -> None:
    """A broker that is killed is replaced at once, although its session would last for long."""
    options = {"zookeeper.session.timeout.ms": 600_000, "default.replication.factor": 3}
    with Cluster(brokers=3, processes=True, options=options) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        producer.produce("t", b"0", partition=0)
        assert producer.flush(60) == 0
        topic = producer.list_topics("t").topics["t"].partitions[0]
        assert sorted(topic.replicas) == [0, 1, 2]
        cluster.kill(topic.leader)
        producer.produce("t", b"1", partition=0)
        assert producer.flush(60) == 0
        cluster.start(topic.leader)
        cluster.stop()
        cluster.start()
        assert values_of(cluster.bootstrap, "t", 2) == [b"0", b"1"]


def values_of(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values = [message.value() for message in consumer.consume(count, 60)]
    consumer.close()
    return values


@pytest.mark.parametrize("other", [{"process": True}, {"zookeeper": "h:1"}])
def test_processes_have_no_other_tree(other: dict[str, Any]) -> None:
    with pytest.raises(InvalidValueError, match="processes=True: must be without process"):
        Cluster(brokers=2, processes=True, **other)


def test_a_worker_that_cannot_start_says_why() -> None:
    from barnabas.testing.process import NotReadyError

    options = {"num.partitions": "many"}
    with (
        pytest.raises(NotReadyError, match=r"num\.partitions=many"),
        Cluster(brokers=2, processes=True, options=options),
    ):
        pass


def test_a_process_that_cannot_start_says_why() -> None:
    from barnabas.testing.process import NotReadyError

    with (
        pytest.raises(
            NotReadyError, match=r"exited with code 1 before it was ready: .*num\.partitions"
        ),
        Cluster(options={"num.partitions": "many"}, process=True),
    ):
        pass


def test_what_was_not_started_has_no_address() -> None:
    with pytest.raises(InvalidValueError, match="not started"):
        _ = Cluster().bootstrap
    with pytest.raises(InvalidValueError, match="brokers=0"):
        Cluster(brokers=0)
    with pytest.raises(InvalidValueError, match="2 racks for 3 brokers"):
        Cluster(brokers=3, racks=("red", "green"))


def test_stopping_twice_is_stopping_once() -> None:
    calls: list[str] = []

    class Recorder:
        def start(self, options: Mapping[str, str]) -> tuple[str, int]:
            calls.append(f"start {options['listeners']} {options['log.dirs'] != ''}")
            return "127.0.0.1", 77

        def stop(self) -> None:
            calls.append("stop")

        def kill(self) -> None:
            calls.append("kill")

    with Cluster(runner=Recorder()) as cluster:
        assert cluster.bootstrap == "127.0.0.1:77"
        cluster.kill()
        cluster.stop()
        cluster.start()
        cluster.stop()
        cluster.stop()
    assert calls == [
        "start PLAINTEXT://127.0.0.1:0 True",
        "kill",
        "start PLAINTEXT://127.0.0.1:77 True",
        "stop",
    ]


def test_a_broker_that_fails_to_stop_leaves_no_other_running() -> None:
    ended: list[int] = []

    class Runner:
        def __init__(self, number: int) -> None:
            self.number = number

        def start(self, options: Mapping[str, str]) -> tuple[str, int]:
            return "127.0.0.1", 77

        def stop(self) -> None:
            ended.append(self.number)
            if self.number == 0:
                raise TimeoutError("it does not stop")

        kill = stop

    for end in (Cluster.stop, Cluster.kill):
        cluster = Cluster(brokers=3)
        cluster._members = [Member(number, Runner(number)) for number in range(3)]
        cluster.start()
        with pytest.raises(TimeoutError):
            end(cluster)
        cluster.close()
        assert ended == [0, 1, 2]
        ended.clear()


def in_sync(bootstrap: str, topic: str) -> list[int]:
    async def ask() -> list[int]:
        async with ClusterClient(bootstrap) as client:
            (view,) = await describe_topics(client, [topic])
            # The broker that is asked may not have heard of the topic yet.
            return sorted(view.partitions[0].isr) if 0 in view.partitions else []

    return asyncio.run(ask())


def until_in_sync(bootstrap: str, topic: str, wanted: list[int]) -> None:
    deadline = time.monotonic() + 60
    while (found := in_sync(bootstrap, topic)) != wanted:
        assert time.monotonic() < deadline, f"in sync are {found}, not {wanted}"
        time.sleep(0.05)


@pytest.mark.parametrize("one_way", [False, True])
def test_brokers_that_are_cut_apart_lose_each_other_and_nobody_else(one_way: bool) -> None:
    """The follower falls out of sync, although both live; healed, it catches up."""
    options = {"replica.lag.time.max.ms": "1000", "replica.fetch.wait.max.ms": "200"}
    with Cluster(brokers=3, options=options, wired=True) as cluster:

        async def create_on_two() -> None:
            async with ClusterClient(cluster.bootstrap) as client:
                topic = NewTopic("t", replica_assignments={0: [1, 2]})
                [created] = await create_topics(client, [topic])
                assert created.error is None

        asyncio.run(create_on_two())
        until_in_sync(cluster.bootstrap, "t", [1, 2])
        cluster.partition(2, 1, one_way=one_way)  # what the follower asks does not arrive
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": 1})
        producer.produce("t", b"alone")
        assert producer.flush(60) == 0
        until_in_sync(cluster.bootstrap, "t", [1])
        assert all(answers(address) for address in cluster.bootstrap.split(","))
        cluster.heal()
        until_in_sync(cluster.bootstrap, "t", [1, 2])


def test_only_wired_brokers_are_cut_apart() -> None:
    with pytest.raises(InvalidValueError, match="wired=True: needs at least two brokers"):
        Cluster(wired=True)
    with pytest.raises(InvalidValueError, match="use wired=True"):
        Cluster(brokers=2).partition(0, 1)
    with Cluster(brokers=2, wired=True) as cluster:
        for numbers in ((0, 2), (1, 1)):
            with pytest.raises(InvalidValueError, match="must be two different ones from 0 to 1"):
                cluster.partition(*numbers)


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_metrics_are_served_where_the_cluster_says(process: bool) -> None:
    with Cluster(process=process, metrics=True) as cluster:
        url = cluster.metrics_url()
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert b"barnabas_scrapes_total" in answer.read()
        cluster.restart(0)
        assert cluster.metrics_url() == url
        with urllib.request.urlopen(url, timeout=60) as answer:
            assert answer.status == 200


def test_without_metrics_there_is_no_address() -> None:
    with pytest.raises(InvalidValueError, match=r"no metrics are served: start a Cluster\(metrics"):
        Cluster().metrics_url()
