"""The controller's gauges: of the active one only, and current after each event."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.broker.monitoring.scraping import Series, scraped, summed
from tests.unit.broker.neighbours import broker, create, until
from tests.unit.broker.serving import Serving, create_topic

from barnabas.controller.states import ControllerState
from barnabas.coordination.memory import MemoryStore
from barnabas.metadata.topic_store import NewTopic

PREFIX = "kafka_controller_"


def short(found: Series) -> Series:
    return {name.removeprefix(PREFIX): value for name, value in found.items()}


def test_one_broker_is_the_controller_of_itself(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        create_topic(serving.connect(), "t", 5)
        found = short(serving.inside(lambda: scraped(serving.broker.metrics)))
        assert found["kafkacontroller_activecontrollercount"] == 1
        assert found["kafkacontroller_globaltopiccount"] == 1
        assert found["kafkacontroller_globalpartitioncount"] == 5
        assert found["kafkacontroller_activebrokercount"] == 1
        assert found["kafkacontroller_controllerstate"] == 0
        assert found["barnabas_controller_epoch"] == 1
        assert found["controllerstats_controllerchangerateandtimems"] == 1
        assert found["controllerstats_topicchangerateandtimems"] >= 1
        assert found["controllereventmanager_eventqueuetimems"] >= 2
        assert found['controllerchannelmanager_queuesize{broker_id="0"}'] == 0
        assert found['barnabas_elections_total{cause="first"}'] == 5


def test_what_the_controller_does_is_seen_while_it_does_it(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        made = serving.broker

        async def watched() -> list[float]:
            seen = []

            async def work(term: object) -> None:
                seen.append(
                    scraped(made.metrics)["kafka_controller_kafkacontroller_controllerstate"]
                )

            await made.controller.call(work, ControllerState.REASSIGNMENT)
            seen.append(scraped(made.metrics)["kafka_controller_kafkacontroller_controllerstate"])
            return seen

        ran = asyncio.run_coroutine_threadsafe(watched(), made.loop).result(60)
        assert ran == [5, 0]


def test_a_failover_is_counted_by_its_cause(tmp_path: Path) -> None:
    """The leader dies: another is elected, the ISR shrinks, and the sums say so."""

    async def story() -> None:
        store = MemoryStore()
        brokers = [broker(store, tmp_path, number) for number in range(3)]
        for each in brokers:
            await each.start()
        controller = brokers[0]
        await create(controller, NewTopic("t", 3, 3))
        await until(lambda: all(len(each.partitions) == 3 for each in brokers), "all have all")
        before = short(summed(*brokers))
        assert before["kafkacontroller_preferredreplicaimbalancecount"] == 0
        await brokers[2].kill()
        left = brokers[:2]
        await until(
            lambda: (
                all(
                    len(partition.isr) == 2
                    for each in left
                    for partition in each.partitions.values()
                    if partition.is_leader
                )
                and sum(p.is_leader for each in left for p in each.partitions.values()) == 3
            ),
            "the others lead without it",
        )
        await until(lambda: controller.controller.events_waiting == 0, "it has decided")
        total = short(summed(*left))
        assert total["kafkacontroller_activecontrollercount"] == 1
        assert total["kafkacontroller_activebrokercount"] == 2
        assert total["kafkacontroller_offlinepartitionscount"] == 0
        assert total["kafkacontroller_preferredreplicaimbalancecount"] == 1
        assert total['barnabas_elections_total{cause="broker-gone"}'] == 1
        assert total['barnabas_isr_changes_total{change="shrink",cause="broker-gone"}'] == 3
        assert total["kafka_server_replicamanager_isrshrinks_total"] == 3
        assert total["kafka_server_replicamanager_underreplicatedpartitions"] == 3
        assert total["controllerstats_leaderelectionrateandtimems"] >= 1
        assert total["controllerstats_uncleanleaderelections_total"] == 0
        back = broker(store, tmp_path, 2)
        await back.start()
        brokers = [*left, back]
        await until(
            lambda: summed(*brokers)["kafka_server_replicamanager_underreplicatedpartitions"] == 0,
            "it has caught up",
        )
        total = short(summed(*brokers))
        assert total["kafka_server_replicamanager_isrexpands_total"] == 3
        assert total['barnabas_isr_changes_total{change="expand",cause="caught-up"}'] == 3
        for each in reversed(brokers):
            await each.stop()

    asyncio.run(story())
