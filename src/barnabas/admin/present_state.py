"""The present state of groups, partitions, clients, brokers and topics, in sentences with reasons.

What the diary says about a subject explains what describing it shows: `entries` are those about
it, the newest first.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from barnabas.admin.cluster import describe_cluster
from barnabas.admin.config_entries import ConfigEntry, ConfigResourceType, ConfigSource, Resource
from barnabas.admin.configs import describe_configs
from barnabas.admin.group_offsets import group_offsets
from barnabas.admin.groups import GroupDescription, describe_group
from barnabas.admin.lag import lag_of, timestamps_at
from barnabas.admin.log_dirs import describe_log_dirs_of
from barnabas.admin.offsets import list_offsets
from barnabas.admin.topics import describe_topics
from barnabas.client.cluster_client import CONTROLLER, ClusterClient
from barnabas.client.metadata import PartitionView, TopicView
from barnabas.diary.entry import Entry
from barnabas.diary.sentences import sentence
from barnabas.diary.wording import moment, size, span
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, InvalidValueError, RequestError
from barnabas.model.ids import EARLIEST, LATEST, TopicPartition

NAMED_MAX = 5
"""How many of many are named."""


# -- groups


async def group_state(client: ClusterClient, name: str, entries: list[Entry]) -> list[str]:
    """Return the state of a group, who is awaited, and how far it is behind."""
    try:
        group = await describe_group(client, name)
    except RequestError as failure:
        if failure.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return [f"group {name} does not exist"]
        raise
    kind = f"{group.type} group" if group.type else "group"
    texts = [
        f"{group.state}: a {kind} with {_counted(len(group.members), 'member')}, coordinated by "
        f"broker {group.coordinator_id}"
    ]
    texts += _waits(group, entries)
    texts += await _lag(client, name)
    return texts


def _waits(group: GroupDescription, entries: list[Entry]) -> list[str]:
    began = next((each for each in entries if each.event == "group.rebalance"), None)
    reason = ""
    if began is not None:
        age = span(_now_ms() - began.last_ms)
        reason = f" (begun {age} ago: {sentence(began.event, began.cause, began.data)})"
    if group.state == "PreparingRebalance":
        return [f"it waits until all members have joined again{reason}"]
    if group.state == "CompletingRebalance":
        return [f"it waits for the assignment by its leader{reason}"]
    if group.state not in ("Reconciling", "Assigning"):
        return []
    awaited = [
        f"member {member.member_id} ({member.host.removeprefix('/')}) has "
        f"{len(member.partitions or ())} of its {len(member.target or ())} partitions, epoch "
        f"{member.epoch} of {group.assignment_epoch}"
        for member in group.members
        if member.epoch != group.assignment_epoch
        or set(member.partitions or ()) != set(member.target or ())
    ]
    return [f"it waits for: {each}{reason}" for each in awaited[:NAMED_MAX]]


async def _lag(client: ClusterClient, name: str) -> list[str]:
    committed = await group_offsets(client, name)
    view = await client.refresh(dict.fromkeys(partition.topic for partition in committed))
    known = {key: each for key, each in committed.items() if view.partition(key) is not None}
    if not known:
        return ["it has no committed offsets"]
    lags = await lag_of(client, known, _now_ms())
    behind = {key: lag for key, lag in lags.items() if lag.records}
    if not behind:
        return [f"it has read all of its {_counted(len(lags), 'partition')}"]
    worst, lag = max(behind.items(), key=lambda each: each[1].records)
    waits = "" if lag.waiting_ms is None else f", the next of which is {span(lag.waiting_ms)} old"
    total = sum(each.records for each in behind.values())
    return [
        f"it is {_counted(total, 'record')} behind in {_counted(len(behind), 'partition')}; most "
        f"in {worst}: {_counted(lag.records, 'record')}{waits}"
    ]


# -- partitions


async def partition_state(
    client: ClusterClient, key: TopicPartition, entries: list[Entry]
) -> list[str]:
    """Return a partition's leader, why each replica is not in sync, and what retention does."""
    topic = await _topic(client, key.topic)
    view = topic.partitions.get(key.partition)
    if view is None:
        raise InvalidValueError(
            f"topic {key.topic} has {_counted(len(topic.partitions), 'partition')}, not partition "
            f"{key.partition}"
        )
    texts = [_leader(view, entries)]
    texts += await _replicas(client, key, view, entries)
    options = await _options(client, key.topic)
    min_isr = int(_value(options, "min.insync.replicas", "1"))
    if len(view.isr) < min(min_isr, len(view.replicas)):
        texts.append(
            f"producers with acks=all are rejected: {_counted(len(view.isr), 'replica')} in sync, "
            f"min.insync.replicas={min_isr}"
        )
    if view.leader_id >= 0:
        texts += await _retention(client, key, options)
    return texts


def _leader(view: PartitionView, entries: list[Entry]) -> str:
    isr, replicas = _listed(view.isr), _listed(view.replicas)
    if view.leader_id < 0:
        why = _newest(entries, "partition.offline")
        return f"no leader; ISR {isr} of replicas {replicas}" + (f": {why}" if why else "")
    text = f"broker {view.leader_id} leads in epoch {view.leader_epoch}; ISR {isr} of {replicas}"
    if view.replicas and view.leader_id != view.replicas[0]:
        text += f"; the preferred replica is broker {view.replicas[0]}"
    return text


async def _replicas(
    client: ClusterClient, key: TopicPartition, view: PartitionView, entries: list[Entry]
) -> list[str]:
    missing = [each for each in view.replicas if each not in view.isr]
    if not missing:
        return ["all replicas are in sync"]
    alive = {each.node_id for each in (await describe_cluster(client)).brokers}
    found = await describe_log_dirs_of(client, [each for each in missing if each in alive], [key])
    texts = []
    for broker in missing:
        reasons = []
        if broker not in alive:
            reasons.append("the broker is not alive")
        elif broker in view.offline:
            reasons.append("its log directory is offline")
        directories = found.get(broker)
        if isinstance(directories, list):
            for directory in directories:
                if directory.error is not None and broker in view.offline:
                    reasons.append(f"{directory.path}: {directory.error.code.name}")
                for replica in directory.replicas:
                    if replica.partition == key and not replica.is_future:
                        reasons.append(f"it is {_counted(replica.offset_lag, 'record')} behind now")
        why = next(
            (
                sentence(each.event, each.cause, each.data)
                for each in entries
                if each.event == "isr.shrink"
                and broker in each.data.get("from", ())
                and broker not in each.data.get("to", ())
            ),
            None,
        )
        if why is not None:
            reasons.append(f"it left so: {why}")
        refused = next((each for each in entries if each.event == "isr.refused"), None)
        if refused is not None and broker in refused.data.get("to", ()):
            reasons.append(sentence(refused.event, refused.cause, refused.data))
        text = "; ".join(reasons) or "it has not caught up since it follows"
        texts.append(f"broker {broker} is not in sync: {text}")
    return texts


async def _retention(
    client: ClusterClient, key: TopicPartition, options: Mapping[str, ConfigEntry]
) -> list[str]:
    """Say when the oldest segment goes, in advance."""
    start = (await list_offsets(client, {key: EARLIEST}))[key].offset
    end = (await list_offsets(client, {key: LATEST}))[key].offset
    if start >= end:
        return ["it has no records"]
    policy = _value(options, "cleanup.policy", "delete")
    text = f"it has offsets {start:,} to {end - 1:,}"
    if "delete" not in policy:
        return [f"{text}; only compaction removes records (cleanup.policy={policy})"]
    limit_ms = int(_value(options, "retention.ms", "-1"))
    limit_bytes = int(_value(options, "retention.bytes", "-1"))
    texts = [text]
    times = await timestamps_at(client, {key: start})
    if limit_ms < 0 and limit_bytes < 0:
        return [f"{text}; its segments stay: retention.ms and retention.bytes are not limited"]
    if limit_ms >= 0 and key in times:
        goes_ms = times[key] + limit_ms
        when = "is due" if goes_ms <= _now_ms() else f"goes at {moment(goes_ms)} at the earliest"
        texts.append(
            f"its oldest record is of {moment(times[key])}; the segment from offset {start:,} "
            f"{when}, by retention.ms={limit_ms} ({span(limit_ms)}): once its newest record is so "
            f"old, and another segment was begun (segment.ms={_value(options, 'segment.ms', '?')}, "
            f"segment.bytes={_value(options, 'segment.bytes', '?')})"
        )
    if limit_bytes >= 0:
        texts.append(
            f"the oldest segments go when the log is larger than {size(limit_bytes)} "
            "(retention.bytes)"
        )
    return texts


# -- clients, brokers, topics


async def client_state(client: ClusterClient, name: str, entries: list[Entry]) -> list[str]:
    """Return whether a client is throttled now, as far as the diary tells."""
    for entry in entries:
        if entry.event == "throttle.end":
            break
        if entry.event == "throttle.begin":
            return [f"throttled since {moment(entry.at_ms)}"]
    if not entries:
        return [f"nothing is known to have been rejected or throttled of {name}"]
    newest = entries[0]
    return [f"not throttled; the last entry is {span(_now_ms() - newest.last_ms)} old"]


async def broker_state(client: ClusterClient, number: int, entries: list[Entry]) -> list[str]:
    """Return whether a broker is alive, and which of its replicas are not well."""
    cluster = await describe_cluster(client)
    topics = [topic for topic in await describe_topics(client, None) if not topic.error]
    held = [
        (TopicPartition(topic.name, index), view)
        for topic in topics
        for index, view in topic.partitions.items()
        if number in view.replicas
    ]
    alive = {each.node_id: each for each in cluster.brokers}
    if number not in alive and not held:
        raise InvalidValueError(f"no broker {number}; alive are {_listed(sorted(alive))}")
    where = f"{alive[number].host}:{alive[number].port}" if number in alive else ""
    return broker_texts(
        where,
        len(held),
        sum(1 for _, view in held if view.leader_id == number),
        [key for key, view in held if number not in view.isr],
        [key for key, view in held if view.leader_id < 0],
        is_controller=cluster.controller_id == number,
    )


def broker_texts(
    where: str,
    held: int,
    led: int,
    lagging: Sequence[TopicPartition],
    lost: Sequence[TopicPartition],
    *,
    is_controller: bool,
) -> list[str]:
    """Return the state of a broker with so many replicas; it is not alive if it is nowhere."""
    texts = []
    if where:
        role = ", the controller," if is_controller else ""
        texts.append(f"alive{role} at {where}; it leads {led} of its {_counted(held, 'replica')}")
    else:
        texts.append(f"not alive; it has {_counted(held, 'replica')}")
        if lost:
            texts.append(f"partitions without a leader meanwhile: {_some(lost)}")
    if lagging:
        texts.append(f"not in sync in {_counted(len(lagging), 'partition')}: {_some(lagging)}")
    elif held:
        texts.append("all of its replicas are in sync")
    return texts


async def topic_state(client: ClusterClient, name: str, entries: list[Entry]) -> list[str]:
    """Return what is wrong with a topic's partitions, and which options it has of its own."""
    topic = await _topic(client, name)
    views = list(topic.partitions.values())
    factor = max((len(view.replicas) for view in views), default=0)
    texts = [f"{_counted(len(views), 'partition')} with {_counted(factor, 'replica')} each"]
    leaderless = [TopicPartition(name, v.index) for v in views if v.leader_id < 0]
    lagging = [TopicPartition(name, v.index) for v in views if len(v.isr) < len(v.replicas)]
    if leaderless:
        texts.append(f"without a leader: {_some(leaderless)}")
    if lagging:
        texts.append(f"with replicas out of sync: {_some(lagging)}")
    if not leaderless and not lagging:
        texts.append("every partition has a leader, and all replicas are in sync")
    own = [
        f"{option.name}={option.value}"
        for option in (await _options(client, name)).values()
        if option.source is ConfigSource.TOPIC
    ]
    if own:
        texts.append(f"options of its own: {', '.join(own)}")
    return texts


# -- shared


async def _topic(client: ClusterClient, name: str) -> TopicView:
    try:
        [topic] = await describe_topics(client, [name], to=CONTROLLER)  # which decides it
    except BarnabasError:
        [topic] = await describe_topics(client, [name])
    if topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise InvalidValueError(f"topic {name} does not exist")
    if topic.error is not ErrorCode.NONE:
        raise RequestError(topic.error, f"topic {name}: {topic.error.meaning}")
    return topic


async def _options(client: ClusterClient, topic: str) -> dict[str, ConfigEntry]:
    try:
        found = await describe_configs(client, Resource(ConfigResourceType.TOPIC, topic))
    except BarnabasError:
        return {}  # the options may not be read; the rest may
    return {entry.name: entry for entry in found}


def _value(options: Mapping[str, ConfigEntry], name: str, default: str) -> str:
    entry = options.get(name)
    return default if entry is None or entry.value is None else entry.value


def _newest(entries: Iterable[Entry], event: str) -> str | None:
    return next(
        (sentence(each.event, each.cause, each.data) for each in entries if each.event == event),
        None,
    )


def _now_ms() -> int:
    return int(time.time() * 1000)


def _listed(numbers: Iterable[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"


def _some(keys: Sequence[TopicPartition]) -> str:
    more = len(keys) - NAMED_MAX
    return ", ".join(map(str, keys[:NAMED_MAX])) + (f" and {more} more" if more > 0 else "")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
