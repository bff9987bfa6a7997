"""What the console shows of a real broker's requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from tests.unit.broker.coordinated import COORDINATED, find, join, join_request
from tests.unit.broker.serving import Serving, Wire, batch_of, fetch, fetch_request, produce

from barnabas.broker.monitoring.request_view import RequestView
from barnabas.cli.console_part import _fetch_sessions, _topic_id


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with Serving(tmp_path_factory.mktemp("data"), COORDINATED) as running:
        yield running


@pytest.fixture
def view(serving: Serving) -> Iterator[RequestView]:
    broker = serving.broker
    made = RequestView(
        broker.parts.request_metrics,
        broker.parts.network,
        broker.clock,
        broker.now_ms,
        broker.timer.now_ms,
        partial(_topic_id, broker),
        partial(_fetch_sessions, broker),
    )
    serving.inside(made.start)
    yield made
    serving.inside(made.stop)


def test_answered_requests_and_errors(
    serving: Serving, view: RequestView, wire: Wire, topic: str
) -> None:
    produce(wire, topic, batch_of("a"))
    produce(wire, "no-such-topic", batch_of("a"), partition=5)
    seen = serving.inside(view.seen)
    latest = [(each.api, each.error) for each in seen.recent]
    assert ("Produce", "") in latest
    assert ("Produce", "UNKNOWN_TOPIC_OR_PARTITION") in latest
    [error] = seen.errors
    assert (error.api, error.client_id, error.count) == ("Produce", "test", 1)
    assert abs(error.last_ms - serving.broker.now_ms()) < 60_000
    assert {each.principal for each in seen.recent} == {"User:ANONYMOUS"}
    assert all(each.total_ms > 0 for each in seen.slowest)
    serving.inside(view.stop)
    produce(wire, "no-such-topic", batch_of("a"), partition=5)
    assert [each.count for each in serving.inside(view.seen).errors] == [1]


def test_what_waits_and_for_what(
    serving: Serving, view: RequestView, wire: Wire, topic: str
) -> None:
    with serving.connect() as reader:
        fetch(reader, topic)
        reader.send(fetch_request(topic, max_wait_ms=60_000), 12)
        serving.wait_inside(lambda: view.seen().waiting, "the fetch waits")
        seen = serving.inside(view.seen)
        [waiting] = seen.waiting
        assert seen.waiting_count == 1
        assert (waiting.api, waiting.awaits) == ("Fetch", f"records of {topic}-0")
        assert (waiting.client_id, waiting.host) == ("test", "127.0.0.1")
        assert waiting.waiting_ms >= 0
        produce(wire, topic, batch_of("a"))
        reader.read_frame()
        assert serving.inside(view.seen).waiting == []


def test_a_member_waits_for_the_others(
    serving: Serving, view: RequestView, wire: Wire, new_name: Callable[[], str]
) -> None:
    group = new_name()
    find(wire, group)
    join(wire, group)  # and the assignment
    with serving.connect() as late:
        late.send(join_request(group), 3)
        serving.wait_inside(lambda: view.seen().waiting, "the second member waits")
        [waiting] = serving.inside(view.seen).waiting
        assert (waiting.api, waiting.awaits) == ("JoinGroup", "the other members of the group")


def test_who_writes_and_reads_a_topic(
    serving: Serving, view: RequestView, topic: str, new_name: Callable[[], str]
) -> None:
    other = new_name()
    with Wire(serving.address, "writer") as writer, Wire(serving.address, "reader") as reader:
        produce(writer, topic, batch_of("a"))
        opened = reader.ask(fetch_request(topic, session_epoch=0), 12)
        assert opened.session_id
        clients = serving.inside(lambda: view.clients_of(topic))
        assert [(each.api, each.client_id) for each in clients] == [
            ("Fetch", "reader"),
            ("Produce", "writer"),
        ]
        assert all(abs(each.last_ms - serving.broker.now_ms()) < 60_000 for each in clients)
        assert serving.inside(lambda: view.clients_of(other)) == []
        reader.ask(fetch_request(topic, session_id=opened.session_id, session_epoch=-1), 12)
        clients = serving.inside(lambda: view.clients_of(topic))
        assert [each.client_id for each in clients] == ["writer"], "its session has ended"
