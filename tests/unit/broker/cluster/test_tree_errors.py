"""Requests that reach a coordination service which is gone: clients are told what to do about it.

A controller that was frozen for longer than its session finds that out by its next write. Whoever
asked it must look for the next controller, not give up.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.coordinated import COORDINATED, commit
from tests.unit.broker.serving import Serving, create_topic, metadata

from barnabas.broker.cluster.configs import TOPIC
from barnabas.coordination.contract import CoordinationError, ServiceUnavailable, SessionExpired
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.incremental_alter_configs import (
    AlterableConfig as IncrementalConfig,
)
from barnabas.wire.messages.incremental_alter_configs import (
    AlterConfigsResource as IncrementalResource,
)
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.schema import Message

WRITES = ("create", "set", "delete", "multi")
REQUESTS: dict[str, tuple[Message, Callable[[Any], int]]] = {
    "CreateTopics": (
        CreateTopicsRequest(
            topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)],
            timeout_ms=60_000,
        ),
        lambda answer: answer.topics[0].error_code,
    ),
    "DeleteTopics": (
        DeleteTopicsRequest(topics=[DeleteTopicState(name="old")], timeout_ms=60_000),
        lambda answer: answer.responses[0].error_code,
    ),
    "CreatePartitions": (
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="old", count=2)]),
        lambda answer: answer.results[0].error_code,
    ),
    "AlterConfigs": (
        AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=TOPIC,
                    resource_name="old",
                    configs=[AlterableConfig(name="retention.ms", value="1000")],
                )
            ]
        ),
        lambda answer: answer.responses[0].error_code,
    ),
    "IncrementalAlterConfigs": (
        IncrementalAlterConfigsRequest(
            resources=[
                IncrementalResource(
                    resource_type=TOPIC,
                    resource_name="old",
                    configs=[IncrementalConfig(name="retention.ms", value="1000")],
                )
            ]
        ),
        lambda answer: answer.responses[0].error_code,
    ),
}


def break_tree(serving: Serving, failure: CoordinationError) -> None:
    """Let every write from now on fail as if the service had just gone."""

    async def fail(*_: object, **__: object) -> None:
        raise failure

    def put() -> None:
        for name in WRITES:
            setattr(serving.broker.tree, name, fail)

    serving.inside(put)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (SessionExpired(72059024598827008), ErrorCode.NOT_CONTROLLER),
        (ServiceUnavailable("no session with ZooKeeper"), ErrorCode.REQUEST_TIMED_OUT),
    ],
    ids=["expired", "away"],
)
def test_what_only_the_controller_can_do(
    tmp_path: Path, failure: CoordinationError, code: ErrorCode
) -> None:
    with Serving(tmp_path) as serving, serving.connect() as wire:
        create_topic(wire, "old")
        create_topic(wire, "two")
        break_tree(serving, failure)
        codes = {name: error_of(wire.ask(body)) for name, (body, error_of) in REQUESTS.items()}
        assert codes == dict.fromkeys(REQUESTS, code)
        assert code.retriable


def test_what_other_requests_are_told(tmp_path: Path) -> None:
    """A consumer that asks for a new topic, a group or its offsets knows other words for it."""
    with Serving(tmp_path, COORDINATED) as serving, serving.connect() as wire:
        create_topic(wire, "old")
        break_tree(serving, SessionExpired(1))
        (topic,) = metadata(wire, "new", create=True).topics
        assert topic.error_code == ErrorCode.LEADER_NOT_AVAILABLE
        answer = wire.ask(FindCoordinatorRequest(key="g"), 3)
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert commit(wire, "g", {("old", 0): 1}, version=0) == [
            ErrorCode.COORDINATOR_NOT_AVAILABLE
        ]


def test_a_deletion_whose_controller_left_office(tmp_path: Path) -> None:
    """The request is in the tree, and the client learns at once that another one sees to it."""
    with Serving(tmp_path) as serving, serving.connect() as wire:
        create_topic(wire, "old")
        broker = serving.broker

        async def resign_meanwhile(name: str) -> None:
            """Ask nobody, so that this controller is surely too late."""
            broker.loop.call_soon(broker.loop.create_task, broker.controller.resign())

        broker.topics._store.request_deletion = resign_meanwhile  # type: ignore[method-assign]
        body = DeleteTopicsRequest(topics=[DeleteTopicState(name="old")], timeout_ms=60_000)
        (result,) = wire.ask(body).responses
        assert result.error_code == ErrorCode.NOT_CONTROLLER
