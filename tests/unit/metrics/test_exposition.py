"""A scrape: every series in a form that Prometheus accepts, in slices, whatever a value has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.exposed import Exposed, parse

from barnabas.metrics.catalogue.exposing import OMITTED_FAMILIES
from barnabas.metrics.exposition import RUN, SLICE_S, Exposition, Form
from barnabas.metrics.metric import Kind, Metric, label_text
from barnabas.metrics.registry import Registry
from barnabas.metrics.vocabulary import Names

REQUESTS = Metric(
    "kafka_network_requestmetrics_requests_total",
    Kind.COUNTER,
    "Requests.",
    ("request",),
    bean="kafka.network:type=RequestMetrics,name=RequestsPerSec",
)
TIMES = Metric(
    "kafka_network_requestmetrics_totaltimems",
    Kind.QUANTILES,
    "Milliseconds.",
    ("request",),
    scale=0.001,
)
SECONDS = Metric("barnabas_request_seconds", Kind.BUCKETS, "Seconds.", ("api",), scale=1e-6)
SIZE = Metric("kafka_log_log_size", Kind.GAUGE, "Bytes.", ("topic", "partition"))
FILES = Metric("process_open_fds", Kind.GAUGE, "Open files.")


class Parts:
    """A collector of given series."""

    def __init__(self, *families: tuple[Metric, Iterable[tuple[str, float]]]) -> None:
        self.families = families

    def collect(self) -> Iterator[tuple[Metric, Iterable[tuple[str, float]]]]:
        yield from self.families


def frozen() -> float:
    return 0.0


def scrape(registry: Registry, *, clock: Callable[[], float] = frozen, **form: Any) -> Exposed:
    written = b"".join(Exposition(registry, Form(**form), clock).chunks()).decode()
    return parse(written, openmetrics=form.get("openmetrics", False))


def sized(partitions: int) -> Registry:
    """Return a registry with so many partitions of a topic."""
    registry = Registry()
    texts = [label_text(SIZE.labels, ("orders", str(number))) for number in range(partitions)]
    registry.add_collector(Parts((SIZE, [(text, 7) for text in texts])))
    return registry


@pytest.mark.parametrize("openmetrics", [False, True])
def test_each_kind_has_its_form(openmetrics: bool) -> None:
    registry = Registry()
    registry.counter(REQUESTS, "Produce").add(3)
    registry.gauge(FILES, lambda: 12)
    registry.add_collector(Parts((SIZE, [('topic="t",partition="0"', 4096)])))
    for microseconds in (100, 200, 300, 40_000):
        registry.histogram(TIMES, "Produce").record(microseconds)
        registry.histogram(SECONDS, "Produce").record(microseconds)
    found = scrape(registry, openmetrics=openmetrics)
    kinds = {name: family.kind for name, family in found.items()}
    requests = REQUESTS.name.removesuffix("_total") if openmetrics else REQUESTS.name
    assert kinds == {
        requests: "counter",
        FILES.name: "gauge",
        SIZE.name: "gauge",
        TIMES.name: "gauge",
        f"{TIMES.name}_count": "unknown" if openmetrics else "untyped",
        SECONDS.name: "histogram",
        OMITTED_FAMILIES.name: "gauge",
    }
    assert found.value(REQUESTS.name, request="Produce") == 3
    assert found.value(FILES.name) == 12
    assert found.value(SIZE.name, topic="t", partition="0") == 4096
    assert found[FILES.name].help == "Open files."


def test_quantiles_are_spelled_as_dashboards_do() -> None:
    registry = Registry()
    for microseconds in range(1, 1001):
        registry.histogram(TIMES, "Fetch").record(microseconds)
    found = scrape(registry)
    spelled = [dict(labels)["quantile"] for labels in found.series(TIMES.name)]
    assert spelled == ["0.50", "0.75", "0.95", "0.98", "0.99", "0.999"]
    median = found.value(TIMES.name, request="Fetch", quantile="0.50")
    assert median == pytest.approx(0.5, rel=0.04)
    assert found.value(f"{TIMES.name}_count", request="Fetch") == 1000


def test_a_distribution_that_recorded_nothing() -> None:
    """Kafka has its quantiles from the start; ours in buckets would be many lines of zeros."""
    registry = Registry()
    registry.histogram(TIMES, "Fetch")
    registry.histogram(SECONDS, "Fetch")
    found = scrape(registry)
    assert found.value(TIMES.name, request="Fetch", quantile="0.99") == 0
    assert found.value(f"{TIMES.name}_count", request="Fetch") == 0
    assert SECONDS.name not in found


@given(st.lists(st.integers(0, 2**40), min_size=1))
def test_buckets_count_what_is_below_their_bound(values: list[int]) -> None:
    registry = Registry()
    for value in values:
        registry.histogram(SECONDS, "Fetch").record(value)
    found = scrape(registry)
    for labels, reached in found.series(f"{SECONDS.name}_bucket").items():
        bound = float(dict(labels)["le"])
        assert reached == sum(value * 1e-6 < bound for value in values)
    assert found.value(f"{SECONDS.name}_sum", api="Fetch") == pytest.approx(sum(values) * 1e-6)


def test_series_of_several_parts_are_contiguous() -> None:
    """The reader fails otherwise: each family has one HELP, and its series follow it."""
    registry = Registry()
    registry.counter(REQUESTS, "Produce").add(1)
    registry.gauge(FILES, lambda: 1)
    registry.add_collector(Parts((REQUESTS, [('request="Fetch"', 2)]), (SIZE, [("", 1)])))
    registry.add_collector(Parts((REQUESTS, [('request="Metadata"', 3)])))
    found = scrape(registry)
    assert list(found.series(REQUESTS.name).values()) == [1, 2, 3]


@given(st.text(), st.text(min_size=1))
def test_labels_survive_whatever_they_have(topic: str, group: str) -> None:
    """Names of groups are the clients' choice: quotation marks, line ends, control characters."""
    topic, group = (each.encode("utf-8", "replace").decode() for each in (topic, group))
    metric = Metric("lag", Kind.GAUGE, "Lag.", ("group", "topic"))
    registry = Registry()
    registry.gauge(metric, lambda: 5, group, topic)
    registry.add_collector(Parts((metric, [(label_text(("topic",), (f"c{group}",)), 6)])))
    for openmetrics in (False, True):
        labels = [dict(each) for each in scrape(registry, openmetrics=openmetrics).series("lag")]
        wanted = {"group": group, "topic": topic} if topic else {"group": group}
        assert labels == [wanted, {"topic": f"c{group}"}]


def test_truth_and_infinity_are_numbers() -> None:
    registry = Registry()
    registry.gauge(FILES, lambda: float("inf"))
    registry.add_collector(Parts((SIZE, [('topic="a"', True), ('topic="b"', float("nan"))])))
    found = scrape(registry)
    assert found.value(FILES.name) == float("inf")
    assert found.value(SIZE.name, topic="a") == 1
    value = found.value(SIZE.name, topic="b")
    assert value != value


def test_a_part_that_fails_is_left_out() -> None:
    def broken() -> Iterator[tuple[str, float]]:
        yield 'topic="t"', 1
        raise OSError("gone")

    class Broken:
        def collect(self) -> Iterator[Any]:
            yield FILES, [("", 1)]
            raise OSError("gone, too")

    registry = Registry()
    registry.gauge(REQUESTS_NOW, lambda: 1 // 0)
    registry.add_collector(Parts((SIZE, broken())))
    registry.add_collector(Broken())
    exposition = Exposition(registry, Form(), frozen)
    found = parse(b"".join(exposition.chunks()).decode())
    assert set(found) == {FILES.name, OMITTED_FAMILIES.name}
    assert [name for name, _ in exposition.failures] == [REQUESTS_NOW.name, SIZE.name, "Broken"]


REQUESTS_NOW = Metric("requests_now", Kind.GAUGE, "Requests.")


def test_it_pauses_as_soon_as_a_slice_is_over() -> None:
    """By a clock that moves by a third of a slice at each look, most looks end none."""
    ticks = count()
    registry = sized(10 * RUN)
    exposition = Exposition(registry, Form(), lambda: next(ticks) * SLICE_S / 3)
    chunks = list(exposition.chunks())
    pauses = [number for number, chunk in enumerate(chunks) if not chunk]
    assert len(pauses) >= 3
    assert len(parse(b"".join(chunks).decode()).series(SIZE.name)) == 10 * RUN


def test_it_pauses_while_a_collector_counts() -> None:
    class Counting:
        def collect(self) -> Iterator[tuple[Metric, Iterable[tuple[str, float]]] | None]:
            yield from [None] * 9
            yield FILES, [("", 7.0)]

    ticks = count()
    registry = Registry()
    registry.add_collector(Counting())
    exposition = Exposition(registry, Form(), lambda: next(ticks) * SLICE_S)
    chunks = list(exposition.chunks())
    assert chunks.count(b"") >= 9
    assert parse(b"".join(chunks).decode()).value(FILES.name) == 7


def test_large_scrapes_are_sent_in_chunks() -> None:
    chunks = [each for each in Exposition(sized(10_000), Form(), frozen).chunks() if each]
    assert len(chunks) > 3
    assert max(map(len, chunks)) < 128 * 1024


@pytest.mark.parametrize(("partitions", "shown"), [(9, 9), (10, 10), (11, 0), (1000, 0)])
def test_too_many_partitions_are_left_out_and_counted(partitions: int, shown: int) -> None:
    registry = sized(partitions)
    registry.gauge(FILES, lambda: 1)
    found = scrape(registry, partition_series_max=10)
    assert len(found.series(SIZE.name)) == shown
    assert found.value(OMITTED_FAMILIES.name) == (0 if shown else 1)
    assert found.value(FILES.name) == 1
    assert len(scrape(registry).series(SIZE.name)) == partitions


def test_what_is_left_out_is_not_read_to_its_end() -> None:
    read = []

    def series() -> Iterator[tuple[str, float]]:
        for number in range(100_000):
            read.append(number)
            yield f'partition="{number}"', 1

    registry = Registry()
    registry.add_collector(Parts((SIZE, series())))
    scrape(registry, partition_series_max=1000)
    assert len(read) <= 1000 + RUN


def test_groups_choose_what_is_read() -> None:
    def unwanted() -> Iterator[tuple[str, float]]:
        raise AssertionError("nobody asked for it")
        yield

    registry = sized(1)
    registry.gauge(FILES, lambda: 1)
    registry.add_collector(Parts((Metric("t", Kind.GAUGE, "T.", ("topic",)), unwanted())))
    always = {OMITTED_FAMILIES.name}
    assert set(scrape(registry, groups=frozenset({"partitions"}))) == {SIZE.name} | always
    assert set(scrape(registry, groups=frozenset({"broker"}))) == {FILES.name} | always
    both = frozenset({"broker", "partitions"})
    assert set(scrape(registry, groups=both)) == {FILES.name, SIZE.name} | always


def test_comments_are_for_people_who_read_text() -> None:
    registry = sized(1)
    for openmetrics, expected in ((False, ["# broker 2 is missing: no answer"]), (True, [])):
        exposition = Exposition(
            registry,
            Form(openmetrics=openmetrics),
            frozen,
            comments=["broker 2 is missing:\nno answer"],
        )
        written = b"".join(exposition.chunks()).decode()
        assert parse(written, openmetrics=openmetrics).comments == expected


@pytest.mark.parametrize("openmetrics", [False, True])
def test_confluent_names_have_no_types_and_lower_case_labels(openmetrics: bool) -> None:
    lag = Metric(
        "kafka_server_replicafetchermanager_maxlag",
        Kind.GAUGE,
        "Lag.",
        ("clientId", "topic"),
        bean="kafka.server:type=ReplicaFetcherManager,name=MaxLag",
    )
    registry = Registry()
    registry.counter(REQUESTS, "Produce").add(2)
    registry.gauge(lag, lambda: 1, "Replica", "")
    mean = label_text(("clientId", "topic"), ('x,clientId="y', "t"))
    registry.add_collector(Parts((lag, [(mean, 3)])))
    found = scrape(registry, names=Names.CONFLUENT, openmetrics=openmetrics)
    name = "kafka_network_requestmetrics_requestspersec"
    assert found.value(name, request="Produce") == 2
    assert found[name].kind == ("unknown" if openmetrics else "untyped")
    assert found.value(lag.name, clientid="Replica") == 1
    assert found.value(lag.name, clientid='x,clientId="y', topic="t") == 3


def test_quotas_are_a_metric_per_resource_where_dashboards_want_that() -> None:
    rate = Metric(
        "kafka_server_quota_byte_rate",
        Kind.GAUGE,
        "Bytes.",
        ("resource", "user", "clientId"),
        bean="kafka.server:type={resource}",
    )
    registry = Registry()
    registry.gauge(rate, lambda: 1, "Produce", "alice", "")
    registry.gauge(rate, lambda: 2, "Fetch", "alice", "app")
    found = scrape(registry, names=Names.CONFLUENT)
    assert found.value("kafka_server_produce_byte_rate", user="alice") == 1
    assert found.value("kafka_server_fetch_byte_rate", user="alice", client_id="app") == 2
    assert found.names == {
        "kafka_server_produce_byte_rate",
        "kafka_server_fetch_byte_rate",
        OMITTED_FAMILIES.name,
    }
    declared = scrape(registry)
    labels = {"resource": "Fetch", "user": "alice", "clientId": "app"}
    assert declared.value(rate.name, **labels) == 2


@pytest.mark.parametrize("openmetrics", [False, True])
def test_prometheus_own_reader_agrees(openmetrics: bool) -> None:
    reason = "prometheus-client is not installed; the strict reader of these tests has read it"
    module = "prometheus_client.openmetrics.parser" if openmetrics else "prometheus_client.parser"
    parser = pytest.importorskip(module, reason=reason)
    registry = sized(3)
    registry.counter(REQUESTS, 'a "b"\n\\').add(1)
    for value in (10, 1000, 100_000):
        registry.histogram(TIMES, "Fetch").record(value)
        registry.histogram(SECONDS, "Fetch").record(value)
    written = b"".join(Exposition(registry, Form(openmetrics=openmetrics), frozen).chunks())
    theirs = {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in parser.text_string_to_metric_families(written.decode())
        for sample in family.samples
    }
    ours = {
        (series.name, series.labels): value
        for family in parse(written.decode(), openmetrics=openmetrics).values()
        for series, value in family.samples.items()
    }
    assert theirs == ours
