"""What is shown: rates from two samples, and the state in the later one.

Plain and synchronous: times are in the samples. What cannot be known is None, which is not 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.cli.health import is_unavailable, is_under_min_isr, is_under_replicated
from barnabas.cli.top.change import Change
from barnabas.cli.top.page import BYTES_IN, BYTES_OUT, CONNECTIONS, IDLE, LOOP_BUSY, MEMORY, Page
from barnabas.cli.top.requests import RequestRow
from barnabas.cli.top.sample import GroupSample, Sample
from barnabas.client.metadata import TopicView
from barnabas.model.ids import TopicPartition

COMMITS_S = 15.0
"""Consumers commit every five seconds by default: the rates of groups are those of so long."""


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic; rates are per second."""

    name: str
    partitions: int
    records_in: float | None
    bytes_in: float | None
    bytes_out: float | None
    under_replicated: int
    offline: int


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker; rates are of the partitions that it leads, per second."""

    broker_id: int
    address: str
    rack: str | None
    is_controller: bool
    leads: int
    replicas: int
    not_in_sync: int
    """Its replicas that are not in the ISR."""
    records_in: float | None
    bytes_in: float | None
    bytes_out: float | None
    round_trip_ms: float | None
    busy: float | None
    """Part of the time in which it computed, from 0 to 1."""
    connections: int | None
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group; rates are of the partitions that it has positions in, per second."""

    name: str
    state: str
    topics: int
    lag: int
    lag_s: float | None
    """None if it could not be read."""
    lag_s_at_least: bool
    records_in: float | None
    records_read: float | None
    drained_s: float | None
    """When it will have read all at this speed; None if it falls behind or keeps up."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything that is shown of a cluster."""

    seconds: float | None
    """Between the two samples; None if there was one: then there are no rates."""
    cluster_id: str | None
    controller_id: int | None
    partitions: int
    records_in: float | None
    bytes_in: float | None
    bytes_out: float | None
    records_read: float | None
    under_replicated: int
    under_min_isr: int
    offline: int
    bytes_are_growth: bool
    """Whether bytes are what logs have grown by, because no metrics are known."""
    topics: tuple[TopicRow, ...]
    brokers: tuple[BrokerRow, ...]
    groups: tuple[GroupRow, ...]
    requests: tuple[RequestRow, ...] | None
    """None if no metrics are known."""
    missing: tuple[str, ...]


class Readings:
    """Compares each sample with the ones before it."""

    def __init__(self, *, internal: bool = False) -> None:
        self._internal = internal
        self._samples: deque[Sample] = deque()

    def of(self, after: Sample) -> Reading:
        """Return what to show of a sample, which is the newest."""
        samples = self._samples
        while len(samples) > 1 and after.at_s - samples[0].at_s > COMMITS_S:
            samples.popleft()
        before, earlier = (samples[-1], samples[0]) if samples else (None, None)
        samples.append(after)
        return compare(before, after, earlier=earlier, internal=self._internal)


def compare(
    before: Sample | None,
    after: Sample,
    *,
    earlier: Sample | None = None,
    internal: bool = False,
) -> Reading:
    """Return what to show; `internal` topics count if that is wanted.

    The rates of groups are those since an earlier sample, if there is one.
    """
    change = Change(before, after)
    of_groups = Change(earlier or before, after)
    topics = [topic for topic in after.topics if internal or not topic.internal]
    rows = tuple(_topic(topic, change) for topic in topics)
    brokers = tuple(_brokers(topics, change))
    groups = tuple(_group(name, group, of_groups) for name, group in after.groups.items())
    views = [(topic.name, view) for topic in topics for view in topic.partitions.values()]
    return Reading(
        seconds=change.seconds,
        cluster_id=after.cluster_id,
        controller_id=after.controller_id,
        partitions=len(views),
        records_in=_sum(row.records_in for row in rows),
        bytes_in=_sum(row.bytes_in for row in rows),
        bytes_out=_sum(row.bytes_out for row in rows),
        records_read=_sum(row.records_read for row in groups),
        under_replicated=sum(row.under_replicated for row in rows),
        under_min_isr=sum(
            is_under_min_isr(view, after.min_isr.get(name, 1)) for name, view in views
        ),
        offline=sum(row.offline for row in rows),
        bytes_are_growth=not change.has_all_pages,
        topics=rows,
        brokers=brokers,
        groups=groups,
        requests=change.requests(),
        missing=after.missing,
    )


def _topic(topic: TopicView, change: Change) -> TopicRow:
    keys = [TopicPartition(topic.name, number) for number in topic.partitions]
    brokers = [broker.node_id for broker in change.after.brokers]
    views = topic.partitions.values()
    bytes_in = bytes_out = None
    if change.has_all_pages:
        bytes_in = change.counted(BYTES_IN, topic=topic.name)
        bytes_out = change.counted(BYTES_OUT, topic=topic.name)
    else:
        bytes_in = _sum(map(change.grown, keys))
    return TopicRow(
        topic.name,
        len(keys),
        _sum(map(change.written, keys)),
        bytes_in,
        bytes_out,
        sum(map(is_under_replicated, views)),
        sum(is_unavailable(view, brokers) for view in views),
    )


def _brokers(topics: Iterable[TopicView], change: Change) -> Iterable[BrokerRow]:
    after = change.after
    led: dict[int, list[TopicPartition]] = {broker.node_id: [] for broker in after.brokers}
    replicas = dict.fromkeys(led, 0)
    not_in_sync = dict.fromkeys(led, 0)
    for topic in topics:
        for view in topic.partitions.values():
            if view.leader_id in led:
                led[view.leader_id].append(TopicPartition(topic.name, view.index))
            for broker_id in view.replicas:
                if broker_id in led:
                    replicas[broker_id] += 1
                    not_in_sync[broker_id] += broker_id not in view.isr
    for broker in after.brokers:
        own = broker.node_id
        page = after.pages.get(own)
        bytes_in = change.counted(BYTES_IN, broker=own)
        connections = page.total(CONNECTIONS) if page is not None else None
        memory = page.total(MEMORY) if page is not None else None
        yield BrokerRow(
            broker_id=own,
            address=f"{broker.host}:{broker.port}",
            rack=broker.rack,
            is_controller=own == after.controller_id,
            leads=len(led[own]),
            replicas=replicas[own],
            not_in_sync=not_in_sync[own],
            records_in=_sum(map(change.written, led[own])),
            bytes_in=bytes_in if page is not None else _sum(map(change.grown, led[own])),
            bytes_out=change.counted(BYTES_OUT, broker=own),
            round_trip_ms=after.round_trips_ms.get(own),
            busy=_busy(page) if page is not None else None,
            connections=None if connections is None else int(connections),
            memory_bytes=None if memory is None else int(memory),
        )


def _busy(page: Page) -> float | None:
    busy = page.total(LOOP_BUSY)
    if busy is not None:
        return busy
    idle = page.total(IDLE)
    return None if idle is None else min(max(1.0 - idle, 0.0), 1.0)


def _group(name: str, group: GroupSample, change: Change) -> GroupRow:
    lag = sum(
        max(end - max(offset, group.starts.get(key, 0)), 0)
        for key, offset in group.committed.items()
        if (end := change.after.ends.get(key)) is not None
    )
    written = _sum(change.written(key) for key in group.committed)
    read = _sum(change.read(name, key) for key in group.committed)
    drained_s = None
    if lag and written is not None and read is not None and read > written:
        drained_s = lag / (read - written)
    lag_s = None
    if group.waiting is not None:
        lag_s = group.waiting.oldest_ms / 1000
    elif not lag:
        lag_s = 0.0
    return GroupRow(
        name=name,
        state=group.state,
        topics=len({key.topic for key in group.committed}),
        lag=lag,
        lag_s=lag_s,
        lag_s_at_least=group.waiting is not None and group.waiting.at_least,
        records_in=written,
        records_read=read,
        drained_s=drained_s,
    )


def _sum(rates: Iterable[float | None]) -> float | None:
    """Add the rates that are known; None if none is."""
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None
