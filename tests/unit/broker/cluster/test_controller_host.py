"""The controller's place in a broker: what goes wrong in an event, and what makes it look again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.broker.neighbours import alone_with_tree, broker, create, until

from barnabas.broker.broker import Broker
from barnabas.broker.cluster import controller_host
from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.controller.term import Term
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptFileError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

T0 = TopicPartition("t", 0)


def test_an_event_that_fails_is_told_and_the_next_one_runs(tmp_path: Path) -> None:
    """A controller that stood still would hold its office and decide nothing any more."""

    async def story() -> None:
        told: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        alone = broker(MemoryStore(), tmp_path, 0)
        await alone.start()

        async def fails(_: Term) -> None:
            raise ZeroDivisionError("a bug")

        async def works(term: Term) -> int:
            return term.epoch

        with pytest.raises(ZeroDivisionError):
            await alone.controller.call(fails)
        assert await alone.controller.call(works) == 1
        assert [type(each["exception"]) for each in told] == [ZeroDivisionError]
        await alone.stop()

    asyncio.run(story())


def test_an_epoch_that_is_no_number_is_named(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        tree = MemoryCoordination(store)
        await tree.start()
        await tree.create(nodes.CONTROLLER_EPOCH, b"many")
        with pytest.raises(CorruptFileError, match="/controller_epoch is not a number: b'many'"):
            await broker(store, tmp_path, 0).start()

    asyncio.run(story())


def test_who_cannot_run_for_office_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch is spent, so nobody else would remind it."""
    monkeypatch.setattr(controller_host, "RETRY_S", 0.01)

    async def story() -> None:
        alone, tree = await alone_with_tree(tmp_path)
        data, _ = await tree.get(nodes.CONTROLLER_EPOCH)
        await tree.set(nodes.CONTROLLER_EPOCH, b"many")
        await tree.delete(nodes.CONTROLLER)
        await until(lambda: alone.controller.term is None, "it has left office")
        await tree.set(nodes.CONTROLLER_EPOCH, data)
        await until(lambda: alone.controller.term is not None, "it is in office again")
        assert (await tree.get(nodes.CONTROLLER_EPOCH))[0] == b"2"
        await alone.stop()

    asyncio.run(story())


def test_an_epoch_that_somebody_wrote_costs_a_term_and_not_the_office(tmp_path: Path) -> None:
    """The term cannot go on, and nobody else could run while the node names this broker."""

    async def story() -> None:
        alone, tree = await alone_with_tree(tmp_path)
        await tree.set(nodes.CONTROLLER_EPOCH, b"41")
        await create(alone, NewTopic("t", 1, 1))
        term = alone.controller.term
        assert term is not None
        assert term.epoch == 42
        await alone.stop()

    asyncio.run(story())


def test_who_has_stopped_runs_for_no_office(tmp_path: Path) -> None:
    async def story() -> None:
        alone, tree = await alone_with_tree(tmp_path)
        await alone.controller.stop()
        await tree.delete(nodes.CONTROLLER)
        for _ in range(100):  # all that it could do about it takes a few turns of the loop
            await tree.exists(nodes.CONTROLLER)
        assert await tree.exists(nodes.CONTROLLER) is None
        assert alone.controller.term is None
        await alone.stop()

    asyncio.run(story())


def test_the_office_is_free_before_the_logs_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To close thousands of logs takes seconds, in which nobody would decide anything."""

    async def story() -> None:
        store = MemoryStore()
        first, second = (broker(store, tmp_path, number) for number in range(2))
        await first.start()
        await second.start()
        await until(lambda: len(first.cluster.brokers) == 2, "both know each other")
        close = first.logs.close

        async def late(now_ms: int, epoch: int) -> None:
            await until(lambda: second.controller.term is not None, "the other one is in office")
            await close(now_ms, epoch)

        monkeypatch.setattr(first.logs, "close", late)
        await first.stop()
        await second.stop()

    asyncio.run(story())


@pytest.mark.parametrize("entity", [("topics", "t"), ("brokers", nodes.DEFAULT_ENTITY)])
def test_a_config_that_allows_unclean_elections_has_one_held(
    tmp_path: Path, entity: tuple[str, str]
) -> None:
    """Nobody in sync is alive: from now on whoever lives may lead."""

    async def story() -> None:
        store = MemoryStore()
        controller, behind, ahead = (broker(store, tmp_path, number) for number in range(3))
        for each in (controller, behind, ahead):
            await each.start()
        await until(lambda: len(controller.cluster.brokers) == 3, "all know each other")
        topic = NewTopic("t", 1, 2, {0: [1, 2]})
        (made,) = await controller.topics.create([topic], dry_run=False, timeout_ms=60_000)
        assert not isinstance(made, Exception)

        def leader(of: Broker) -> int:
            view = of.cluster.topic("t")
            return view.partitions[0].leader if view is not None else -1

        await behind.kill()
        await until(lambda: leader(controller) == 2, "the one that is left leads")
        await ahead.kill()
        await until(lambda: leader(controller) == -1, "nobody leads")
        back = broker(store, tmp_path, 1)
        await back.start()
        await until(lambda: T0 in back.partitions, "it has heard of its replica")
        assert leader(controller) == -1, "it was not in sync"
        await back.store_configs(*entity, {"unclean.leader.election.enable": "true"})
        await until(lambda: leader(controller) == 1, "it leads all the same")
        term = controller.controller.term
        assert term is not None
        held = term.knowledge.leaderships[T0]
        assert (held.isr, held.recovering) == ((1,), True)
        await back.stop()
        await controller.stop()

    asyncio.run(story())


def test_blocks_of_producer_ids_for_brokers_that_ask(tmp_path: Path) -> None:
    """As Apache Kafka's do: only the controller gives them, and only to those who live."""

    async def story() -> None:
        store = MemoryStore()
        controller, other = (broker(store, tmp_path, number) for number in range(2))
        await controller.start()
        await other.start()
        await until(lambda: len(controller.cluster.brokers) == 2, "both know each other")

        async def ask(to: Broker, broker_id: int, epoch: int) -> AllocateProducerIdsResponse:
            endpoint = to.endpoints[0]
            line = await Connection.open(Address(endpoint.host, endpoint.port), client_id="test")
            try:
                asked = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
                answer: AllocateProducerIdsResponse = await line.send(asked, version=0)
            finally:
                line.close()
            return answer

        epoch = other.broker_epoch
        first, second = [await ask(controller, 1, epoch) for _ in range(2)]
        assert (first.error_code, first.producer_id_start, first.producer_id_len) == (0, 0, 1000)
        assert (second.error_code, second.producer_id_start) == (0, 1000)
        assert await other.producer_ids.next_id() == 2000
        for to, number, life, code in (
            (controller, 1, epoch - 1, ErrorCode.STALE_BROKER_EPOCH),
            (controller, 7, epoch, ErrorCode.STALE_BROKER_EPOCH),
            (other, 1, epoch, ErrorCode.NOT_CONTROLLER),
        ):
            assert (await ask(to, number, life)).error_code == code
        await other.stop()
        await controller.stop()

    asyncio.run(story())


def test_a_broker_that_cannot_be_reached_holds_up_nobody_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its listeners have other names: it is told nothing, and why is said."""
    caplog.set_level("INFO")

    async def story() -> None:
        store = MemoryStore()
        controller = broker(store, tmp_path, 0)
        await controller.start()
        tree = MemoryCoordination(store)
        await tree.start()
        strange = nodes.BrokerRegistration([("X", "127.0.0.1", 1)], {"X": "PLAINTEXT"}, None, 0)
        await tree.create(nodes.broker_path(9), strange.encode(), ephemeral=True)
        await until(lambda: 9 in controller.cluster.brokers, "it is heard of")
        await until(lambda: "broker 9 has no listener PLAINTEXT" in caplog.text, "it is said")
        topic = NewTopic("t", 1, 1, {0: [0]})
        (made,) = await controller.topics.create([topic], dry_run=False, timeout_ms=60_000)
        assert not isinstance(made, Exception)
        await tree.close()
        await until(lambda: 9 not in controller.cluster.brokers, "it is gone")
        await controller.stop()

    asyncio.run(story())


def test_preferred_leaders_lead_again_by_themselves(tmp_path: Path) -> None:
    async def story() -> None:
        store = MemoryStore()
        often = {"leader_imbalance_check_interval_seconds": "1"}
        controller, preferred = (broker(store, tmp_path, number, **often) for number in range(2))
        await controller.start()
        await preferred.start()
        await until(lambda: len(controller.cluster.brokers) == 2, "both know each other")
        topic = NewTopic("t", 1, 2, {0: [1, 0]})
        (made,) = await controller.topics.create([topic], dry_run=False, timeout_ms=60_000)
        assert not isinstance(made, Exception)
        await preferred.kill()
        await until(lambda: controller.partitions[T0].is_leader, "the other one leads")
        back = broker(store, tmp_path, 1, **often)
        await back.start()
        await until(lambda: T0 in back.partitions and back.partitions[T0].is_leader, "it is back")
        assert back.partitions[T0].leader_epoch >= 2
        await back.stop()
        await controller.stop()

    asyncio.run(story())


def test_a_controller_that_has_left_meanwhile_elects_nobody() -> None:
    """It looks at the balance, and another broker takes over before it acts."""

    async def moved(*_: object) -> None:
        raise RequestError(ErrorCode.NOT_CONTROLLER)

    balance = SimpleNamespace(to_rebalance=lambda percentage: [T0])
    options = SimpleNamespace(leader_imbalance_per_broker_percentage=10)
    host: Any = SimpleNamespace(
        _term=SimpleNamespace(balance=balance),
        _configs=SimpleNamespace(options=options),
        call=moved,
    )
    assert asyncio.run(ControllerHost.rebalance_leaders(host)) is None
