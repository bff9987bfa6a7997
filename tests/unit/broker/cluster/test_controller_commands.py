"""Whom a broker takes for its controller: the newest one, over its newest connection."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.cluster.controller_commands import ControllerCommands, ControllerConnection
from barnabas.broker.handlers import metadata
from barnabas.broker.network.session import Session
from barnabas.config.listeners import parse_listeners
from barnabas.coordination.contract import ServiceUnavailable
from barnabas.metadata.cluster_view import BrokerView, ClusterView
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

OWN, OWN_EPOCH = 1, 50


class Listening:
    """The part of a broker that hears, and what it knows."""

    def __init__(self) -> None:
        async def nothing(_: object) -> None:
            """There are no topics."""

        broker: Any = SimpleNamespace(
            broker_id=OWN,
            cluster=ClusterView(),
            options=SimpleNamespace(auto_create_topics_enable=False),
        )
        self.broker = broker
        self.cluster: ClusterView = broker.cluster
        broker.shown_leader = lambda topic, partition, leader: leader
        broker.shown_controller = -1
        registration: Any = SimpleNamespace(
            epoch=OWN_EPOCH, view=BrokerView(OWN, {}, None, OWN_EPOCH)
        )
        unexpected: Any = None
        self.control = broker.control = ControllerCommands(
            registration,
            broker.cluster,
            lambda: broker.options,
            learn_topic_configs=nothing,
            take_roles=unexpected,
            stop_replicas=unexpected,
            on_controller=lambda who, epoch: setattr(broker.cluster, "controller_id", who),
            on_topic=lambda topic_id: None,
            on_topic_removed=unexpected,
            on_cluster_changed=lambda: None,
        )

    def tell(
        self,
        *alive: int,
        epoch: int = 3,
        connection: ControllerConnection | None = None,
        to: int = -1,
    ) -> int:
        """Say who is alive; return the error."""
        request = UpdateMetadataRequest(
            controller_id=7,
            controller_epoch=epoch,
            broker_epoch=to,
            live_brokers=[UpdateMetadataBroker(id=each) for each in alive],
        )
        return asyncio.run(self.control.take(request, connection)).error_code


def connection(number: int, listener: str = "PLAINTEXT") -> ControllerConnection:
    return ControllerConnection(listener, number)


def test_what_still_comes_over_an_older_connection_is_not_heard() -> None:
    """It was said again over the next one, and more since: it would undo that."""
    broker = Listening()
    assert broker.tell(1, connection=connection(4)) == ErrorCode.NONE
    assert broker.tell(1, connection=connection(5)) == ErrorCode.NONE
    assert broker.tell(1, 2, connection=connection(5)) == ErrorCode.NONE
    assert broker.tell(1, connection=connection(4)) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert set(broker.cluster.brokers) == {1, 2}
    assert broker.tell(1, 2, 3, connection=connection(5)) == ErrorCode.NONE, (
        "the newer one is heard on"
    )
    assert broker.tell(1, connection=connection(1, "CONTROLLER")) == ErrorCode.NONE, (
        "not comparable"
    )


def test_the_next_controller_may_have_connected_before_the_last_one_spoke() -> None:
    broker = Listening()
    assert broker.tell(1, connection=connection(9)) == ErrorCode.NONE
    assert broker.tell(1, 2, epoch=4, connection=connection(2)) == ErrorCode.NONE
    assert broker.tell(1, epoch=3, connection=connection(9)) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert broker.tell(1, 2, 3, epoch=5) == ErrorCode.NONE, "the one in this broker"
    assert broker.tell(1, epoch=4, connection=connection(2)) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert set(broker.cluster.brokers) == {1, 2, 3}


def test_what_was_meant_for_an_older_life_is_not_heard() -> None:
    broker = Listening()
    assert broker.tell(1, to=OWN_EPOCH - 1) == ErrorCode.STALE_BROKER_EPOCH
    assert broker.tell(1, to=OWN_EPOCH) == ErrorCode.NONE


def test_clients_of_a_broker_that_has_just_started_wait_for_the_controllers_word() -> None:
    """They would take a topic that the broker has not heard of for a deleted one."""
    listening = Listening()
    listening.broker.allows = lambda *asked: True
    listening.broker.offline_replicas = lambda *asked: []
    listening.broker.endpoints_for = lambda *asked: []
    request: Any = SimpleNamespace(
        body=MetadataRequest(topics=[MetadataRequestTopic(name="t")]),
        version=12,
        session=Session("PLAINTEXT", "", ""),
    )
    told = UpdateMetadataRequest(
        controller_id=7,
        controller_epoch=3,
        live_brokers=[UpdateMetadataBroker(id=1)],
        topic_states=[
            UpdateMetadataTopicState(
                topic_name="t",
                topic_id=bytes(range(16)),
                partition_states=[
                    UpdateMetadataPartitionState(partition_index=number, leader=1)
                    for number in range(3)
                ],
            )
        ],
    )

    async def ask() -> Any:
        answer: Any = asyncio.ensure_future(metadata.handle(listening.broker, request))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert not answer.done()
        await listening.control.take(told)
        return await answer

    (topic,) = asyncio.run(ask()).topics
    assert (topic.error_code, len(topic.partitions)) == (ErrorCode.NONE, 3)


@pytest.mark.parametrize(
    ("control_plane", "hint"),
    [
        (None, r"listener IN\?$"),
        ("CONTROL", r"listener CONTROL\? \(a controller of Apache Kafka needs control\.plane\."),
    ],
)
def test_who_is_not_told_of_its_cluster_says_where_it_listens(
    control_plane: str | None, hint: str
) -> None:
    listening = Listening()
    listening.broker.options = SimpleNamespace(
        endpoints=parse_listeners(
            "IN://:1,CONTROL://:2",
            None,
            "IN:PLAINTEXT,CONTROL:PLAINTEXT",
            inter_broker_name="IN",
            control_plane_name=control_plane,
        )
    )
    with pytest.raises(ServiceUnavailable, match=hint):
        asyncio.run(listening.control.until_informed(1))
