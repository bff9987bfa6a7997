"""Topics are created, grown and deleted at the controller, wherever it is, whatever its age."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.network.scripted_broker import ScriptedBroker
from tests.unit.admin.scripted import converse as scripted
from tests.unit.admin.scripted import in_turn

from barnabas.admin.topics import NewTopic, create_partitions, create_topics, delete_topics
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import UnsupportedApiError
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from barnabas.wire.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from barnabas.wire.schema import Message


class Controllers:
    """Brokers 1 and 2: metadata first names 1, which says that 2 is the controller now."""

    def __init__(self, versions: dict[type[Message], tuple[int, int]] | None = None) -> None:
        self.named = 1
        self.brokers = {
            n: ScriptedBroker(
                {
                    MetadataRequest: self.metadata,
                    CreateTopicsRequest: self.answer(n, self.create),
                    CreatePartitionsRequest: self.answer(n, self.grow),
                    DeleteTopicsRequest: self.answer(n, self.delete),
                },
                versions,
            )
            for n in (1, 2)
        }

    def metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        brokers = [
            MetadataResponseBroker(node_id=n, host=broker.address.host, port=broker.address.port)
            for n, broker in self.brokers.items()
        ]
        response = MetadataResponse(brokers=brokers, controller_id=self.named)
        self.named = 2
        return response

    def answer(self, n: int, build: Callable[[Any, int], Message]) -> Callable[[Any, int], Message]:
        code = ErrorCode.NOT_CONTROLLER if n == 1 else ErrorCode.NONE
        return lambda request, version: build(request, code)

    def create(self, request: CreateTopicsRequest, code: int) -> CreateTopicsResponse:
        results = [CreatableTopicResult(name=t.name, error_code=code) for t in request.topics]
        return CreateTopicsResponse(topics=results)

    def grow(self, request: CreatePartitionsRequest, code: int) -> CreatePartitionsResponse:
        results = [
            CreatePartitionsTopicResult(name=t.name, error_code=code or 37) for t in request.topics
        ]
        return CreatePartitionsResponse(results=results)

    def delete(self, request: DeleteTopicsRequest, code: int) -> DeleteTopicsResponse:
        names = [t.name for t in request.topics] or request.topic_names
        return DeleteTopicsResponse(
            responses=[DeletableTopicResult(name=name, error_code=code) for name in names]
        )


def converse(
    client: Callable[[ClusterClient], Awaitable[Any]], controllers: Controllers | None = None
) -> tuple[Any, Controllers]:
    controllers = controllers or Controllers()

    async def conversation() -> Any:
        async with (
            controllers.brokers[1] as first,
            controllers.brokers[2],
            ClusterClient([first.address], retry_backoff_ms=(1, 1)) as cluster_client,
        ):
            return await client(cluster_client)

    return asyncio.run(conversation()), controllers


def test_the_controller_is_followed_when_it_has_moved() -> None:
    topics = [
        NewTopic("a", 3, 2, topic_configs={"retention.ms": "1"}),
        NewTopic("b", replica_assignments={0: [1, 2]}),
    ]
    created, controllers = converse(lambda cluster_client: create_topics(cluster_client, topics))
    assert [(topic.name, topic.error) for topic in created] == [("a", None), ("b", None)]
    [asked] = controllers.brokers[2].asked(CreateTopicsRequest)
    assert isinstance(asked.message, CreateTopicsRequest)
    first, second = asked.message.topics
    assert (first.num_partitions, first.replication_factor) == (3, 2)
    assert [(config.name, config.value) for config in first.configs] == [("retention.ms", "1")]
    assert (second.num_partitions, second.replication_factor) == (-1, -1)
    assert [(a.partition_index, a.broker_ids) for a in second.assignments] == [(0, [1, 2])]


def test_a_refusal_belongs_to_its_topic() -> None:
    [outcome], _ = converse(lambda cluster_client: create_partitions(cluster_client, {"a": 1}))
    assert outcome.name == "a"
    assert outcome.error is not None
    assert outcome.error.code is ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("highest", [1, 5, 6])
def test_topics_are_deleted_by_name_in_old_and_new_versions(highest: int) -> None:
    controllers = Controllers({DeleteTopicsRequest: (0, highest)})
    outcomes, _ = converse(
        lambda cluster_client: delete_topics(cluster_client, ["a", "b"]), controllers
    )
    assert [(outcome.name, outcome.error) for outcome in outcomes] == [("a", None), ("b", None)]


def test_only_the_topic_that_was_throttled_is_sent_again() -> None:
    def answer(*codes: tuple[str, int]) -> CreateTopicsResponse:
        results = [CreatableTopicResult(name=name, error_code=code) for name, code in codes]
        return CreateTopicsResponse(topics=results)

    answers = in_turn(answer(("a", 36), ("b", 89), ("c", 7)), answer(("b", 0)))
    created, broker = scripted(
        {CreateTopicsRequest: answers},
        lambda cluster_client: create_topics(cluster_client, [NewTopic(name) for name in "abc"]),
    )
    errors = [None if topic.error is None else topic.error.code for topic in created]
    # A creation that timed out may still happen: sent again, it could only be refused.
    assert errors == [ErrorCode.TOPIC_ALREADY_EXISTS, None, ErrorCode.REQUEST_TIMED_OUT]
    asked: list[Any] = [each.message for each in broker.asked(CreateTopicsRequest)]
    assert [[topic.name for topic in each.topics] for each in asked] == [["a", "b", "c"], ["b"]]


def test_topics_are_deleted_by_name_and_id() -> None:
    topic_id = uuid.UUID(int=7)
    answer = DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name="a", topic_id=bytes(15) + b"\x01"),
            DeletableTopicResult(name=None, topic_id=topic_id.bytes, error_code=100),
        ]
    )
    script = {DeleteTopicsRequest: in_turn(answer)}
    [by_name, by_id], broker = scripted(
        script, lambda cluster_client: delete_topics(cluster_client, ["a", topic_id])
    )
    assert (by_name.name, by_name.error) == ("a", None)
    assert (by_id.name, by_id.topic_id) == ("", topic_id.bytes)
    assert by_id.error is not None
    assert by_id.error.code is ErrorCode.UNKNOWN_TOPIC_ID
    sent: Any = broker.asked(DeleteTopicsRequest)[0].message
    assert [(each.name, each.topic_id) for each in sent.topics] == [
        ("a", bytes(16)),
        (None, topic_id.bytes),
    ]
    with pytest.raises(UnsupportedApiError, match="this client needs 6"):
        scripted(
            script,
            lambda cluster_client: delete_topics(cluster_client, [topic_id]),
            {DeleteTopicsRequest: (0, 5)},
        )
