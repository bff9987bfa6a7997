"""Asks the brokers of a cluster about partitions, versions, disks and options."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping

from barnabas.admin.cluster import api_versions, describe_cluster
from barnabas.admin.config_entries import ConfigEntry, ConfigResourceType, ConfigSource, Resource
from barnabas.admin.configs import describe_resources
from barnabas.admin.diary import read_diary
from barnabas.admin.log_dirs import describe_log_dirs_of
from barnabas.admin.topics import describe_topics
from barnabas.cli.doctor.cluster_checks import (
    Leaders,
    LogDir,
    MinIsr,
    Replication,
    SameVersions,
    Sick,
)
from barnabas.cli.doctor.finding import Check, NotChecked
from barnabas.cli.doctor.options_checks import BrokerOptionsView, option_checks, unequal
from barnabas.cli.health import is_unavailable, is_under_min_isr, is_under_replicated, min_isr_of
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import TopicView
from barnabas.diary.entry import Entry
from barnabas.diary.sentences import sentence
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.apis import APIS

_REASONS = ("partition.offline", "isr.shrink", "isr.refused")
"""Events that say why a partition is not well."""


async def cluster_checks(client: ClusterClient) -> AsyncIterator[Check]:
    """Yield what the brokers say of the cluster and of themselves."""
    cluster = await describe_cluster(client)
    brokers = [broker.node_id for broker in cluster.brokers]
    topics = [topic for topic in await describe_topics(client, None) if not topic.error]
    for check in partition_checks(
        topics, brokers, await min_isr_of(client, topics), await _entries(client)
    ):
        yield check
    yield SameVersions({broker: await _apis(client, broker) for broker in brokers})
    async for check in _directories(client, brokers):
        yield check
    async for check in _option_checks(client, brokers):
        yield check


def partition_checks(
    topics: Iterable[TopicView],
    brokers: Iterable[int],
    min_isr: Mapping[str, int],
    entries: Iterable[Entry],
) -> list[Check]:
    """Return the checks of all partitions; `entries` of the diary are the newest first."""
    present = set(brokers)
    why: dict[str, str] = {}
    for entry in entries:
        if entry.event in _REASONS:
            why.setdefault(entry.subject, sentence(entry.event, entry.cause, entry.data))
    leaderless, under, at, lagging, single = [], [], [], [], []
    count = 0
    for topic in topics:
        replicas = [len(view.replicas) for view in topic.partitions.values()]
        if replicas and max(replicas) == 1:
            single.append(topic.name)
        for view in topic.partitions.values():
            count += 1
            partition = TopicPartition(topic.name, view.index)
            sick = Sick(partition, view.isr, view.replicas, why.get(str(partition)))
            if is_unavailable(view, present):
                leaderless.append(sick)
            elif is_under_min_isr(view, min_isr[topic.name]):
                under.append(sick)
            elif len(view.replicas) > 1 and len(view.isr) <= min_isr[topic.name]:
                at.append(sick)
            if is_under_replicated(view):
                lagging.append(sick)
    return [
        Leaders(count, tuple(leaderless)),
        MinIsr(tuple(under), tuple(at)),
        Replication(len(present), tuple(lagging), tuple(single)),
    ]


async def _entries(client: ClusterClient) -> list[Entry]:
    """Return what the diary says, the newest first; nothing if there is none to read."""
    try:
        return (await read_diary(client))[::-1]
    except BarnabasError:
        return []


async def _apis(client: ClusterClient, broker: int) -> dict[str, str]:
    versions = await api_versions(client, broker)
    names = {api.key: api.name for api in APIS}
    return {names.get(key, f"API {key}"): str(span) for key, span in versions.ranges.items()}


async def _directories(client: ClusterClient, brokers: list[int]) -> AsyncIterator[Check]:
    for broker, answer in (await describe_log_dirs_of(client, brokers)).items():
        if isinstance(answer, RequestError):
            about = f"broker {broker}"
            yield NotChecked("disk space", about, str(answer), "allow DESCRIBE on the cluster")
            continue
        for directory in answer:
            failure = None if directory.error is None else f"offline: {directory.error}"
            yield LogDir(
                broker, directory.path, directory.total_bytes, directory.usable_bytes, failure
            )


async def _option_checks(client: ClusterClient, brokers: list[int]) -> AsyncIterator[Check]:
    resources = {broker: Resource(ConfigResourceType.BROKER, str(broker)) for broker in brokers}
    described = await describe_resources(client, dict.fromkeys(resources.values()))
    views = []
    for broker, resource in resources.items():
        entries = described[resource]
        if isinstance(entries, RequestError):
            step = "allow DESCRIBE_CONFIGS on the cluster"
            yield NotChecked("options", f"broker {broker}", str(entries), step)
            continue
        views.append(_view(broker, entries))
        for check in option_checks(views[-1], brokers=len(brokers)):
            yield check
    for check in unequal(views):
        yield check


def _view(broker: int, entries: Iterable[ConfigEntry]) -> BrokerOptionsView:
    listed = list(entries)
    return BrokerOptionsView(
        f"broker {broker}",
        {entry.name: entry.value for entry in listed if entry.value is not None},
        {
            entry.name
            for entry in listed
            if entry.source not in (ConfigSource.DEFAULT, ConfigSource.UNKNOWN)
        },
        is_barnabas=any(entry.name.startswith("barnabas.") for entry in listed),
    )
