"""Who writes to a topic, and who reads it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from barnabas.broker.network import topic_clients
from barnabas.broker.network.session import Session
from barnabas.broker.network.topic_clients import ENTRIES_MAX, KEPT_S, TopicClients
from barnabas.model.ids import ZERO_UUID
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse, FetchTopic
from barnabas.wire.messages.produce import ProduceRequest, TopicProduceData

SESSION = Session("PLAINTEXT", "10.0.0.7", "")
APP = ("app", "User:ANONYMOUS", "10.0.0.7")
ID = b"i" * 16


def request(body: Any, client_id: str | None = "app") -> Any:
    return SimpleNamespace(body=body, client_id=client_id, session=SESSION)


def produce(*names: str, **topic: Any) -> Any:
    topics = [TopicProduceData(name=name) for name in names]
    return request(ProduceRequest(topic_data=topics or [TopicProduceData(**topic)]))


def test_producers_are_known_by_name_and_by_id() -> None:
    clients = TopicClients()
    clients.produced(produce("orders", "audit"), None, 1.0)
    clients.produced(produce(topic_id=ID), None, 2.0)
    assert clients.of("orders", ZERO_UUID, (), 3.0) == [("Produce", APP, 1.0)]
    assert clients.of("orders", ID, (), 3.0) == [("Produce", APP, 2.0)]
    assert clients.of("others", ZERO_UUID, (), 3.0) == []


def test_readers_are_known_by_their_fetch_session() -> None:
    clients = TopicClients()
    body = FetchRequest(topics=[FetchTopic(topic="orders")])
    clients.fetched(request(body), FetchResponse(session_id=7), 1.0)
    clients.fetched(request(FetchRequest()), FetchResponse(session_id=7), 2.0)
    assert clients.of("orders", ZERO_UUID, {7, 8}, 3.0) == [("Fetch", APP, 2.0)]
    assert clients.of("orders", ZERO_UUID, {8}, 3.0) == []


def test_readers_without_a_session_name_their_topics_each_time() -> None:
    clients = TopicClients()
    body = FetchRequest(topics=[FetchTopic(topic="orders"), FetchTopic(topic_id=ID)])
    clients.fetched(request(body, None), FetchResponse(), 1.0)
    who = ("", *APP[1:])
    assert clients.of("orders", ZERO_UUID, (), 1.0) == [("Fetch", who, 1.0)]
    assert clients.of("audit", ID, (), 1.0) == [("Fetch", who, 1.0)]


def test_what_was_not_seen_for_long_is_forgotten() -> None:
    clients = TopicClients()
    clients.produced(produce("orders"), None, 1.0)
    assert clients.of("orders", ZERO_UUID, (), KEPT_S)
    assert not clients.of("orders", ZERO_UUID, (), KEPT_S + 1)


def test_there_is_a_bound() -> None:
    clients = TopicClients()
    for number in range(ENTRIES_MAX + 1):
        clients.produced(produce(f"topic-{number}"), None, float(number) / 1000)
    assert not clients.of("topic-0", ZERO_UUID, (), 3.0)
    assert clients.of(f"topic-{ENTRIES_MAX}", ZERO_UUID, (), 3.0)
    assert clients.of(f"topic-{ENTRIES_MAX - 1}", ZERO_UUID, (), 3.0)
    assert len(clients._last) == topic_clients.ENTRIES_MAX // 2 + 1
