"""Quotas at a running broker: responses leave at once, and the connection rests.

The windows are two of a second, so that a second's worth may be used at once and throttle times
are short.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.unit.broker.serving import (
    Serving,
    Wire,
    batch_of,
    create_topic,
    fetch_request,
    metadata,
    produce_request,
    wait_for,
)

from barnabas.metadata import tree_schema as nodes
from barnabas.metrics.catalogue.quotas import EXEMPT_REQUEST_TIME
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.produce import ProduceRequest

Entity = Mapping[str, str | None]


@pytest.fixture
def serving(tmp_path: Any) -> Iterator[Serving]:
    options = {
        "quota.window.num": 2,
        "controller.quota.window.num": 2,
        "auto.create.topics.enable": "true",
    }
    with Serving(tmp_path, options) as running:
        yield running


def client(serving: Serving, client_id: str) -> Wire:
    wire = serving.connect()
    wire._client_id = client_id
    return wire


def set_quota(wire: Wire, entity: Entity, **values: float | None) -> None:
    request = AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[EntityData(entity_type=k, entity_name=v) for k, v in entity.items()],
                ops=[
                    OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in values.items()
                ],
            )
        ]
    )
    (result,) = wire.ask(request).entries
    assert result.error_code == 0, result


def payload(size: int) -> bytes:
    return batch_of([b"x" * size])


def test_a_producer_above_its_quota_is_answered_at_once_and_unread_afterwards(
    serving: Serving,
) -> None:
    """Also what it has sent already waits; others go on."""
    with serving.connect() as admin:
        create_topic(admin, "t")
        set_quota(admin, {"client-id": "greedy"}, producer_byte_rate=100_000)
        greedy, other = client(serving, "greedy"), client(serving, "other")
        began = time.monotonic()
        for _ in range(2):
            greedy.send(produce_request("t", payload(150_000)), 9)
        _, first = greedy.receive(ProduceRequest, 9)
        assert time.monotonic() - began < 0.4
        assert 500 <= first.throttle_time_ms < 520
        for _ in range(3):
            response = other.ask(produce_request("t", payload(150_000)), 9)
            assert response.throttle_time_ms == 0
        appended = serving.inside(
            lambda: serving.broker.partitions.get(("t", 0)).log.log_end_offset
        )
        assert appended == 4
        _, second = greedy.receive(ProduceRequest, 9)
        assert time.monotonic() - began >= first.throttle_time_ms / 1000
        assert second.throttle_time_ms > 1000
        assert second.responses[0].partition_responses[0].base_offset == 4


def test_connections_of_a_client_share_its_quota(serving: Serving) -> None:
    """The other connection is read, and pays with its next request."""
    with serving.connect() as admin:
        create_topic(admin, "t")
        set_quota(admin, {"client-id": None}, producer_byte_rate=100_000)
        first, second, other = (client(serving, each) for each in ("a", "a", "b"))
        assert first.ask(produce_request("t", payload(150_000)), 9).throttle_time_ms >= 500
        began = time.monotonic()
        assert second.ask(produce_request("t", payload(1)), 9).throttle_time_ms >= 400
        assert time.monotonic() - began < 0.4
        assert other.ask(produce_request("t", payload(1)), 9).throttle_time_ms == 0


def test_a_producer_without_responses_is_throttled_too(serving: Serving) -> None:
    """acks=0: its next request waits, whatever it is."""
    with serving.connect() as admin:
        create_topic(admin, "t")
        set_quota(admin, {"user": "ANONYMOUS"}, producer_byte_rate=100_000)
        wire = client(serving, "silent")
        began = time.monotonic()
        wire.send(produce_request("t", payload(150_000), acks=0), 9)
        assert metadata(wire, "t").throttle_time_ms == 0
        assert time.monotonic() - began >= 0.5
        now_ms = serving.broker.timer.now_ms
        assert serving.inside(lambda: serving.broker.quotas._exempt.per_second(now_ms())) > 0


def test_a_throttled_fetch_is_empty_and_keeps_its_session(serving: Serving) -> None:
    """Its bytes are not counted; later the same session gets the records."""
    with serving.connect() as admin:
        create_topic(admin, "t")
        admin.ask(produce_request("t", payload(80_000)), 9)
        admin.ask(produce_request("t", payload(80_000)), 9)
        wire = client(serving, "reader")
        empty = fetch_request("t", 2, session_epoch=0, max_wait_ms=0)
        session = wire.ask(empty, 12).session_id
        assert session
        set_quota(admin, {"client-id": "reader"}, consumer_byte_rate=100_000)
        again = fetch_request(
            "t",
            partition_max_bytes=85_000,
            session_id=session,
            session_epoch=1,
            max_wait_ms=0,
        )
        response = wire.ask(again, 12)
        assert [len(each.partitions) for each in response.responses] == [1]
        began = time.monotonic()
        again = fetch_request("t", 1, session_id=session, session_epoch=2, max_wait_ms=0)
        response = wire.ask(again, 12)
        throttle_ms = response.throttle_time_ms
        assert 500 < throttle_ms <= 660
        assert (response.error_code, response.session_id, response.responses) == (0, session, [])
        (usage,) = serving.inside(lambda: list(serving.broker.quotas.fetch.usage(0)))
        assert usage.throttle_ms == throttle_ms
        epoch = 3
        while not response.responses:
            more = fetch_request("t", 1, session_id=session, session_epoch=epoch, max_wait_ms=0)
            more.topics = []
            response = wire.ask(more, 12)
            assert response.session_id == session
            epoch += 1
        assert time.monotonic() - began >= throttle_ms / 1000
        assert len(response.responses[0].partitions[0].records) > 80_000


def test_a_throttled_first_fetch_leaves_no_session(serving: Serving) -> None:
    """Its client starts another one."""
    with serving.connect() as admin:
        create_topic(admin, "t")
        admin.ask(produce_request("t", payload(150_000)), 9)
        set_quota(admin, {"client-id": "reader"}, consumer_byte_rate=100_000)
        wire = client(serving, "reader")
        response = wire.ask(fetch_request("t", session_epoch=0, max_wait_ms=0), 12)
        assert 500 < response.throttle_time_ms < 520  # a batch larger than the quota's windows
        assert (response.session_id, response.responses) == (0, [])
        assert serving.inside(lambda: len(serving.broker.partitions.fetch_sessions)) == 0


def test_a_fetch_is_no_larger_than_the_quota_allows(serving: Serving) -> None:
    """Nor does it wait for more than that."""
    with serving.connect() as admin:
        create_topic(admin, "t")
        for _ in range(10):
            admin.ask(produce_request("t", payload(20_000)), 9)
        set_quota(admin, {"client-id": "reader"}, consumer_byte_rate=50_000)
        wire = client(serving, "reader")
        request = fetch_request("t", max_wait_ms=60_000, min_bytes=10_000_000)
        response = wire.ask(request, 12)
        assert response.throttle_time_ms <= 20  # the header alone is above the quota
        records = sum(len(p.records or b"") for t in response.responses for p in t.partitions)
        assert records <= 50_000


def test_time_on_the_loop_is_limited(serving: Serving) -> None:
    """At most one window; every API reports the throttle time."""
    with serving.connect() as admin:
        set_quota(admin, {"client-id": "busy"}, request_percentage=0.0001)
        wire = client(serving, "busy")
        assert metadata(wire).throttle_time_ms == 1000
        began = time.monotonic()
        assert wire.ask(ListGroupsRequest()).throttle_time_ms == 1000
        assert time.monotonic() - began > 0.9
        (usage,) = serving.inside(
            lambda: list(serving.broker.quotas.request.usage(serving.broker.timer.now_ms()))
        )
        assert usage.rate > 0.0001
        assert (usage.sharing.user, usage.sharing.client_id) == (None, "busy")


def test_brokers_are_exempt(serving: Serving) -> None:
    """A follower's fetch is neither counted nor throttled; its time is shown apart."""
    with serving.connect() as admin:
        topic_id = create_topic(admin, "t")
        admin.ask(produce_request("t", payload(150_000)), 9)
        set_quota(
            admin,
            {"user": None},
            consumer_byte_rate=1000,
            request_percentage=0.0001,
        )
        wire = client(serving, "broker-1-fetcher-0")
        for _ in range(5):
            request = fetch_request(topic_id, replica_id=1, max_wait_ms=0)
            assert wire.ask(request, 13).throttle_time_ms == 0
        assert serving.inside(lambda: list(serving.broker.quotas.fetch.usage(0))) == []
        assert serving.inside(lambda: serving.broker.metrics.value(EXEMPT_REQUEST_TIME)) > 0


def create(wire: Wire, version: int, **topics: int) -> Any:
    wanted = [
        CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        for name, count in topics.items()
    ]
    return wire.ask(CreateTopicsRequest(topics=wanted, timeout_ms=60_000), version)


def test_new_clients_may_not_change_partitions_above_their_quota(serving: Serving) -> None:
    """One request may overdraw the bucket; then each topic is rejected until it is refilled."""
    with serving.connect() as wire:
        set_quota(wire, {"user": None}, controller_mutation_rate=10)
        response = create(wire, 7, a=30, b=1)
        codes = {each.name: each.error_code for each in response.topics}
        assert codes == {"a": 0, "b": ErrorCode.THROTTLING_QUOTA_EXCEEDED}
        assert 0 < response.throttle_time_ms <= 1000
        grown = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="a", count=31, assignments=None)], timeout_ms=60_000
        )
        while (response := wire.ask(grown, 3)).results[0].error_code:
            assert response.results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            assert response.throttle_time_ms > 0
        deleted = DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=60_000)
        while (response := wire.ask(deleted, 6)).responses[0].error_code:
            assert response.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert create(wire, 7, b=1).topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_old_clients_and_automatic_topics_are_only_throttled(serving: Serving) -> None:
    """They would not understand the error."""
    with serving.connect() as wire:
        set_quota(wire, {"user": None}, controller_mutation_rate=2)
        assert create(wire, 5, a=4).throttle_time_ms == 0
        response = create(wire, 5, b=3)
        assert response.topics[0].error_code == 0
        assert 0 < response.throttle_time_ms <= 1500
        response = metadata(wire, "c", create=True)
        assert response.topics[0].error_code == 0
        assert response.throttle_time_ms <= 500
        names = [
            topic.name for topic in serving.inside(lambda: list(serving.broker.cluster.topics))
        ]
        assert sorted(names) == ["a", "b", "c"]


def test_what_is_only_validated_costs_nothing(serving: Serving) -> None:
    with serving.connect() as wire:
        set_quota(wire, {"user": None}, controller_mutation_rate=1)
        topic = CreatableTopic(name="a", num_partitions=1000, replication_factor=1)
        for _ in range(3):
            request = CreateTopicsRequest(topics=[topic], validate_only=True)
            assert wire.ask(request, 7).topics[0].error_code == 0


def test_quotas_of_another_broker_and_of_a_restart(tmp_path: Any) -> None:
    """They are read from the tree, at the start and whenever a notice says so."""
    serving = Serving(tmp_path, {"quota.window.num": 2})
    with serving, serving.connect() as wire:
        assert not serving.inside(lambda: serving.broker.quotas.active)
        set_quota(wire, {"user": "ada", "client-id": None}, producer_byte_rate=1000)
        set_quota(wire, {"ip": "127.0.0.9"}, connection_creation_rate=7)
    with serving, serving.connect() as wire:
        quotas, store = serving.broker.quotas, serving.broker.parts.config_store
        assert serving.inside(lambda: quotas.active)
        assert serving.inside(lambda: quotas.produce.limit_of("ada", "web")) == 1000
        asyncio.run_coroutine_threadsafe(
            store.set(nodes.clients_of("ada"), nodes.DEFAULT_ENTITY, {"producer_byte_rate": "7"}),
            serving.broker.loop,
        ).result(60)
        wait_for(
            lambda: serving.inside(lambda: quotas.produce.limit_of("ada", "web")) == 7,
            "the notice arrived",
        )
        set_quota(wire, {"user": "ada", "client-id": None}, producer_byte_rate=None)
        assert serving.inside(lambda: quotas.produce.limit_of("ada", "web")) == float("inf")
        assert serving.inside(lambda: quotas.active)


def test_an_invalid_quota_in_the_tree_is_named_and_has_no_effect(serving: Serving) -> None:
    """Another program may have written it."""
    serving.inside(
        lambda: serving.broker.configs_changed("users", "ada", {"producer_byte_rate": "lots"})
    )
    serving.expect_line("users/ada: quota is invalid and has no effect: producer_byte_rate=lots")
    assert not serving.broker.quotas.active
