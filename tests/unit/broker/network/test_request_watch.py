"""Which requests are looked at, and what is kept of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.handlers import served_apis
from barnabas.broker.loop import LongSteps
from barnabas.broker.network.phases import Phases
from barnabas.broker.network.request_metrics import RequestMetrics
from barnabas.broker.network.request_watch import (
    ERRORS_MAX,
    LOOK_S,
    OWN_CLIENT,
    PERIOD_S,
    RECENT_MAX,
    SLOWEST_MAX,
    RequestWatch,
)
from barnabas.broker.network.session import Session
from barnabas.metrics.registry import Registry
from barnabas.model.observations import RequestSeen
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

PRODUCE, FETCH, METADATA = 0, 1, 3
VERSIONS = {PRODUCE: 9, FETCH: 12, METADATA: 9}
BODIES: dict[int, Any] = {
    PRODUCE: ProduceRequest(topic_data=[TopicProduceData(name="orders")]),
    FETCH: FetchRequest(),
    METADATA: MetadataRequest(topics=[]),
}
RESPONSES: dict[int, Any] = {
    PRODUCE: ProduceResponse(),
    FETCH: FetchResponse(),
    METADATA: MetadataResponse(),
}
WALL_MS = 1_700_000_000_000


def failed(*codes: int) -> ProduceResponse:
    results = [PartitionProduceResponse(error_code=code) for code in codes]
    return ProduceResponse(responses=[TopicProduceResponse(partition_responses=results)])


class Watched:
    """The metrics of some APIs, without a broker, and a watch that looks at their requests."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.served = served_apis()
        self.metrics = RequestMetrics(Registry(), self.served, LongSteps(lambda: 0.0))
        self.watch = RequestWatch(lambda: self.now, lambda: WALL_MS)
        self.metrics.watch_requests(self.watch)
        self.session = Session("PLAINTEXT", "10.0.0.7", "")

    def answer(
        self,
        api_key: int = METADATA,
        seconds: float = 0.0001,
        *,
        client_id: str | None = "app",
        session: Session | None = None,
        phases: Phases | None = None,
        response: Any = None,
        by_broker: bool = False,
    ) -> None:
        """Answer a request now that arrived some seconds ago."""
        version = VERSIONS[api_key]
        counts = self.metrics.by_version[api_key][version]
        if counts is None:
            counts = self.metrics.begin(self.served[api_key], version)
        if by_broker:
            assert counts.other is not None
            counts = counts.other
        request: Any = SimpleNamespace(
            body=BODIES[api_key],
            version=version,
            client_id=client_id,
            session=session or self.session,
            size_bytes=100,
            received=self.now - seconds,
            phases=phases,
        )
        counts.answered(request, response or RESPONSES[api_key], self.now)

    @property
    def apis(self) -> list[str]:
        return [each.api for each in self.watch.newest()]


def test_a_connection_is_looked_at_once_a_second() -> None:
    watched = Watched()
    for _ in range(5):
        watched.answer()
    assert watched.apis == ["Metadata"]
    watched.now += LOOK_S
    watched.answer()
    watched.answer()
    assert watched.apis == ["Metadata"] * 2
    watched.answer(session=Session("PLAINTEXT", "10.0.0.8", ""))
    assert [each.host for each in watched.watch.newest()] == ["10.0.0.8", "10.0.0.7", "10.0.0.7"]


def test_a_first_request_does_not_hide_the_first_records() -> None:
    watched = Watched()
    watched.answer(METADATA)
    watched.answer(PRODUCE)
    watched.answer(PRODUCE)
    watched.answer(FETCH)
    assert watched.apis == ["Produce", "Metadata"]
    [(api, who, _)] = watched.watch.topics.of("orders", b"\0" * 16, (), watched.now)
    assert (api, who) == ("Produce", ("app", "User:ANONYMOUS", "10.0.0.7"))


def test_fetches_of_followers_have_their_own_name() -> None:
    watched = Watched()
    watched.answer(FETCH)
    watched.answer(FETCH, by_broker=True)
    assert watched.apis == ["FetchFollower", "FetchConsumer"]


def test_errors_are_always_kept_and_counted_by_client() -> None:
    watched = Watched()
    watched.answer(PRODUCE)
    watched.answer(PRODUCE, response=failed(0, 3))
    watched.answer(PRODUCE, response=failed(6))
    watched.answer(PRODUCE, response=failed(6), client_id="other")
    watched.now += 5
    watched.answer(PRODUCE, response=failed(3))
    errors = [(each.error, each.client_id, each.count) for each in watched.watch.errors()]
    assert errors == [
        ("UNKNOWN_TOPIC_OR_PARTITION", "app", 2),
        ("NOT_LEADER_OR_FOLLOWER", "app", 1),
        ("NOT_LEADER_OR_FOLLOWER", "other", 1),
    ]
    assert [each.last_ms for each in watched.watch.errors()] == [
        WALL_MS,
        WALL_MS - 5000,
        WALL_MS - 5000,
    ]
    assert [each.error for each in watched.watch.newest()][-1] == ""
    assert watched.watch.newest()[0].error == "UNKNOWN_TOPIC_OR_PARTITION"


def test_there_is_a_bound_for_errors() -> None:
    watched = Watched()
    for number in range(ERRORS_MAX + 10):
        watched.answer(PRODUCE, response=failed(3), client_id=f"app-{number}")
    clients = {each.client_id for each in watched.watch.errors()}
    assert len(clients) == ERRORS_MAX
    assert f"app-{ERRORS_MAX + 9}" in clients
    assert "app-0" not in clients
    assert len(watched.watch.newest()) == RECENT_MAX


def test_slow_requests_are_always_kept_and_the_slowest_first() -> None:
    watched = Watched()
    watched.answer(PRODUCE)
    for ms in (5, 80, 20):
        watched.answer(PRODUCE, ms / 1000)
    taken = [round(each.total_ms, 3) for each in watched.watch.slowest()]
    assert taken == [80, 20, 5, 0.1]
    for _ in range(SLOWEST_MAX):
        watched.answer(PRODUCE, 0.050)
    assert [round(each.total_ms) for each in watched.watch.slowest()] == [80] + [50] * 49
    watched.answer(PRODUCE, 0.030)  # none of the slowest, so it is not kept
    assert round(watched.watch.newest()[0].total_ms) == 50


def test_the_slowest_are_those_of_the_last_minutes() -> None:
    watched = Watched()
    watched.answer(seconds=0.5)
    watched.now += PERIOD_S + 1
    watched.answer(seconds=0.2)
    assert [round(each.total_ms) for each in watched.watch.slowest()] == [500, 200]
    watched.now += PERIOD_S
    assert [round(each.total_ms) for each in watched.watch.slowest()] == [200]


@pytest.mark.parametrize(("api_key", "shown_ms"), [(FETCH, 0.0), (METADATA, 400.0)])
def test_waiting_for_records_is_not_slow(api_key: int, shown_ms: float) -> None:
    watched = Watched()
    watched.answer(api_key)
    for _ in range(SLOWEST_MAX):
        watched.answer(api_key, 0.01)
    phases = Phases(watched.now - 0.4)
    phases.pause(watched.now - 0.4)
    watched.answer(api_key, 0.4, phases=phases)
    [slowest, *_] = watched.watch.slowest()
    assert round(slowest.remote_ms, 3) == shown_ms
    assert phases.remote_s == pytest.approx(0.4)


def test_phases_and_throttling_are_shown() -> None:
    watched = Watched()
    phases = Phases(watched.now - 0.01, queue_s=0.5)
    phases.hand_over(watched.now - 0.007)
    watched.answer(PRODUCE, 0.01, phases=phases, response=ProduceResponse(throttle_time_ms=30))
    [seen] = watched.watch.newest()
    assert isinstance(seen, RequestSeen)
    shown = [seen.queue_ms, seen.local_ms, seen.remote_ms, seen.throttle_ms, seen.send_ms]
    assert shown == pytest.approx([500, 3, 0, 30, 7])
    assert seen.total_ms == pytest.approx(510)
    assert (seen.api, seen.version, seen.client_id, seen.size_bytes) == ("Produce", 9, "app", 100)


def test_the_console_does_not_watch_itself() -> None:
    watched = Watched()
    watched.answer(client_id=OWN_CLIENT, seconds=3)
    assert watched.watch.newest() == watched.watch.slowest() == []


def test_requests_without_a_response_are_seen() -> None:
    watched = Watched()
    watched.answer(METADATA)
    counts = watched.metrics.begin(watched.served[PRODUCE], 9)
    request: Any = SimpleNamespace(
        body=BODIES[PRODUCE],
        version=9,
        client_id=None,
        session=watched.session,
        size_bytes=100,
        received=watched.now,
        phases=None,
    )
    counts.unanswered(request, watched.now)
    counts.unanswered(request, watched.now)
    assert watched.apis == ["Produce", "Metadata"]
    assert watched.watch.newest()[0].client_id == ""


def test_nothing_is_looked_at_before_and_after() -> None:
    watched = Watched()
    watched.metrics.watch_requests(None)
    watched.answer(PRODUCE, 2.0, response=failed(3))
    assert watched.watch.newest() == watched.watch.errors() == []
    assert list(watched.metrics.requests()) == [("Produce", 9, 1)]
    watched.metrics.watch_requests(watched.watch)
    watched.answer(PRODUCE)
    watched.answer(METADATA)  # the first of its kind, while there is a watch
    assert watched.apis == ["Metadata", "Produce"]
    assert sorted(watched.metrics.requests()) == [("Metadata", 9, 1), ("Produce", 9, 2)]
