"""CreateTopics: create topics, or only validate the request.

From v4 on, -1 partitions or replicas mean the broker's defaults. v5 returns the configs of the new
topic, v7 its id. The configs `barnabas.fork.*` create a fork of another topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.broker.storage.forks import ForkOf, take_fork
from barnabas.diary import subjects
from barnabas.metadata.cluster_view import TopicView
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigError, RequestError
from barnabas.model.ids import ZERO_UUID
from barnabas.quotas.controller_mutations import ControllerMutations
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

FIRST_STRICT_VERSION = 6
"""Clients of older versions do not know the error of an exceeded mutation quota."""


async def handle(broker: Broker, request: Request[CreateTopicsRequest]) -> CreateTopicsResponse:
    """Validate each topic on its own, then create the valid ones together."""
    body = request.body
    broker.check_controller()
    counts = Counter(topic.name for topic in body.topics)
    results: dict[str, CreatableTopicResult] = {}
    wanted: list[NewTopic] = []
    forks: dict[str, ForkOf] = {}
    for topic in body.topics:
        try:
            if counts[topic.name] > 1:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, f"topic {topic.name!r} is named twice"
                )
            _authorize(broker, request, topic.name)
            wanted.append(_new_topic(broker, request, topic, forks))
        except RequestError as refusal:
            results[topic.name] = _failed(topic.name, refusal)
        except ConfigError as refusal:
            error = RequestError(ErrorCode.INVALID_CONFIG, str(refusal))
            results[topic.name] = _failed(topic.name, error)
    mutations = broker.quotas.mutations(request, strict=request.version >= FIRST_STRICT_VERSION)
    outcomes = await _create(broker, request, wanted, forks, mutations)
    for new, outcome in zip(wanted, outcomes, strict=True):
        if isinstance(outcome, RequestError):
            results[new.name] = _failed(new.name, outcome)
        else:
            topic_id = ZERO_UUID if outcome is None else outcome.topic_id
            results[new.name] = _created(broker, request, new, topic_id)
            if outcome is not None:
                told = {
                    "partitions": len(outcome.partitions),
                    "replication_factor": len(outcome.partitions[0].replicas),
                    "client_id": request.client_id or "",
                }
                broker.note_client("topic.created", subjects.topic(new.name), request.session, told)
    return CreateTopicsResponse(
        throttle_time_ms=mutations.throttle_ms(broker.timer.now_ms()),
        topics=list(results.values()),
    )


async def _create(
    broker: Broker,
    request: Request[CreateTopicsRequest],
    wanted: list[NewTopic],
    forks: Mapping[str, ForkOf],
    mutations: ControllerMutations,
) -> list[TopicView | RequestError | None]:
    prepared: dict[str, NewTopic] = {}

    async def prepare(topic: NewTopic) -> NewTopic:
        mutations.record(topic.partitions, broker.timer.now_ms())
        fork = forks.get(topic.name)
        if fork is None:
            return topic
        prepared[topic.name] = topic
        return await broker.forks.prepare(topic, fork)

    try:
        return await broker.topics.create(
            wanted,
            dry_run=request.body.validate_only,
            timeout_ms=request.body.timeout_ms,
            prepare=prepare,
        )
    finally:
        for name, topic in prepared.items():
            if broker.cluster.topic(name) is None:
                broker.forks.undo(topic)
            else:
                broker.forks.created(topic)


def refuse(
    request: CreateTopicsRequest, code: ErrorCode, message: str | None
) -> CreateTopicsResponse:
    """Answer every topic with one error."""
    error = RequestError(code, message)
    return CreateTopicsResponse(topics=[_failed(topic.name, error) for topic in request.topics])


def _authorize(broker: Broker, request: Request[CreateTopicsRequest], name: str) -> None:
    session = request.session
    if not (
        broker.sees(session, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
        or broker.allows(session, Operation.CREATE, ResourceType.TOPIC, name)
    ):
        raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")


def _new_topic(
    broker: Broker,
    request: Request[CreateTopicsRequest],
    topic: CreatableTopic,
    forks: dict[str, ForkOf],
) -> NewTopic:
    configs: dict[str, str] = {}
    for config in topic.configs:
        if config.value is None:
            raise RequestError(
                ErrorCode.INVALID_CONFIG, f"{config.name}: a null value cannot be set"
            )
        configs[config.name] = config.value
    fork = take_fork(configs)
    if fork is not None:
        if not broker.allows(request.session, Operation.READ, ResourceType.TOPIC, fork.source):
            raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if topic.assignments:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "a fork takes its partitions and replicas from its source",
            )
        partitions = len(broker.forks.check(fork, topic.num_partitions))
        configs = {**broker.configs.overrides_of(fork.source), **configs}
        broker.configs.check_topic(configs)
        forks[topic.name] = fork
        return NewTopic(topic.name, partitions, 1, {}, configs)
    broker.configs.check_topic(configs)
    if topic.assignments:
        if topic.num_partitions != -1 or topic.replication_factor != -1:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "with an assignment, the partition count and replication factor must be -1",
            )
        assignment = {each.partition_index: each.broker_ids for each in topic.assignments}
        if len(assignment) != len(topic.assignments):
            raise RequestError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition is assigned twice"
            )
        return NewTopic(topic.name, len(assignment), -1, assignment, configs)
    partitions, factor = topic.num_partitions, topic.replication_factor
    if partitions == -1:
        partitions = broker.options.num_partitions
    if factor == -1:
        factor = broker.options.default_replication_factor
    return NewTopic(topic.name, partitions, factor, {}, configs)


def _created(
    broker: Broker, request: Request[CreateTopicsRequest], topic: NewTopic, topic_id: bytes
) -> CreatableTopicResult:
    session = request.session
    result = CreatableTopicResult(name=topic.name, topic_id=topic_id, error_message=None)
    if not broker.sees(session, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        result.configs = None
        return result
    first = next(iter(topic.assignment.values()), ())
    result.num_partitions = topic.partitions
    result.replication_factor = len(first) if topic.assignment else topic.replication_factor
    result.configs = [
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.read_only,
            config_source=entry.source,
            is_sensitive=entry.sensitive,
        )
        for entry in broker.configs.describe_topic(topic.configs)
    ]
    return result


def _failed(name: str, refusal: RequestError) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name, error_code=refusal.code, error_message=refusal.message, configs=None
    )
