"""The series of partitions: right in the sum over all brokers."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.broker.monitoring.scraping import scraped, summed
from tests.unit.broker.neighbours import broker, create, until
from tests.unit.broker.serving import Serving, batch_of, create_topic, produce

from barnabas.broker.monitoring.partition_series import OF_LEADER, OF_REPLICA, PartitionSeries
from barnabas.coordination.memory import MemoryStore
from barnabas.metadata.topic_store import NewTopic


def of(name: str, partition: int, topic: str = "t") -> str:
    return f'{name}{{topic="{topic}",partition="{partition}"}}'


def test_one_broker_says_all_of_its_partitions(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        wire = serving.connect()
        create_topic(wire, "t", 2)
        produce(wire, "t", batch_of(["a", "b", "c"]))
        found = serving.inside(lambda: scraped(serving.broker.metrics))
        assert found['kafka_topic_partitions{topic="t"}'] == 2
        size = serving.broker.partitions["t", 0].log.size_bytes
        assert {
            name: found[of(name, 0)]
            for name in (
                "kafka_cluster_partition_underreplicated",
                "kafka_cluster_partition_underminisr",
                "kafka_cluster_partition_atminisr",
                "kafka_cluster_partition_replicascount",
                "kafka_cluster_partition_insyncreplicascount",
                "kafka_cluster_partition_laststableoffsetlag",
                "kafka_topic_partition_current_offset",
                "kafka_topic_partition_oldest_offset",
                "kafka_topic_partition_replicas",
                "kafka_topic_partition_in_sync_replica",
                "kafka_topic_partition_under_replicated_partition",
                "kafka_topic_partition_leader",
                "kafka_topic_partition_leader_is_preferred",
                "kafka_log_log_size",
                "kafka_log_log_numlogsegments",
                "kafka_log_log_logstartoffset",
                "kafka_log_log_logendoffset",
            )
        } == {
            "kafka_cluster_partition_underreplicated": 0,
            "kafka_cluster_partition_underminisr": 0,
            "kafka_cluster_partition_atminisr": 1,
            "kafka_cluster_partition_replicascount": 1,
            "kafka_cluster_partition_insyncreplicascount": 1,
            "kafka_cluster_partition_laststableoffsetlag": 0,
            "kafka_topic_partition_current_offset": 3,
            "kafka_topic_partition_oldest_offset": 0,
            "kafka_topic_partition_replicas": 1,
            "kafka_topic_partition_in_sync_replica": 1,
            "kafka_topic_partition_under_replicated_partition": 0,
            "kafka_topic_partition_leader": 0,
            "kafka_topic_partition_leader_is_preferred": 1,
            "kafka_log_log_size": size,
            "kafka_log_log_numlogsegments": 1,
            "kafka_log_log_logstartoffset": 0,
            "kafka_log_log_logendoffset": 3,
        }


def test_partitions_may_go_while_their_series_are_written(tmp_path: Path) -> None:
    """The writer pauses between any two series; what was there when it began is finished."""
    with Serving(tmp_path) as serving:
        create_topic(serving.connect(), "t", 3)

        def interrupted() -> int:
            count = 0
            made = serving.broker
            collector = next(
                each for each in made.metrics.collectors if isinstance(each, PartitionSeries)
            )
            for metric, series in filter(None, collector.collect()):
                for _ in series:
                    count += 1
                    if metric is OF_REPLICA[0][0] and count == 2:
                        made.parts.replicas.drop(
                            next(iter(made.partitions.values())).topic_partition
                        )
            return count

        assert serving.inside(interrupted) == 1 + 3 * (len(OF_LEADER) + len(OF_REPLICA))


def test_a_cluster_counts_each_partition_once(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        brokers = [broker(store, tmp_path, number) for number in range(3)]
        for each in brokers:
            await each.start()
        await create(brokers[0], NewTopic("t", 6, 2))
        await until(
            lambda: sum(len(each.partitions) for each in brokers) == 12, "all have their replicas"
        )
        await until(lambda: all(each.cluster.topic("t") for each in brokers), "and know the topic")
        total = summed(*brokers)
        assert total['kafka_topic_partitions{topic="t"}'] == 6
        for number in range(6):
            assert total[of("kafka_cluster_partition_replicascount", number)] == 2
            assert total[of("kafka_topic_partition_replicas", number)] == 2
            assert total[of("kafka_topic_partition_leader_is_preferred", number)] == 1
            assert total[of("kafka_log_log_numlogsegments", number)] == 2, "one of each replica"
        assert total["kafka_server_replicamanager_leadercount"] == 6
        assert total["kafka_server_replicamanager_partitioncount"] == 12
        lags = [name for name in total if name.startswith("kafka_server_fetcherlagmetrics")]
        assert len(lags) == 6
        for each in reversed(brokers):
            await each.stop()

    asyncio.run(story())


def test_the_controller_speaks_for_what_has_no_leader(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        controller, other = (broker(store, tmp_path, number) for number in range(2))
        await controller.start()
        await other.start()
        await create(controller, NewTopic("t", 2, 1))
        await until(lambda: len(other.partitions) == 1, "each has one")
        (lost,) = other.partitions.values()
        number = lost.topic_partition.partition
        await other.kill()
        term = controller.controller.term
        assert term is not None
        await until(lambda: 1 not in term.knowledge.brokers, "the controller has noticed")
        await until(lambda: controller.parts.controller.events_waiting == 0, "and has decided")
        found = scraped(controller.metrics)
        assert found[of("kafka_topic_partition_leader", number)] == -1
        assert found[of("kafka_topic_partition_leader", 1 - number)] == 0
        assert found[of("kafka_topic_partition_in_sync_replica", number)] == 1
        assert found[of("kafka_cluster_partition_insyncreplicascount", number)] == 0
        assert found[of("kafka_cluster_partition_underreplicated", number)] == 1
        assert found[of("kafka_cluster_partition_underminisr", number)] == 1
        assert of("kafka_topic_partition_current_offset", number) not in found
        assert found['kafka_topic_partitions{topic="t"}'] == 2
        assert found["kafka_controller_kafkacontroller_offlinepartitionscount"] == 1
        await controller.stop()

    asyncio.run(story())
