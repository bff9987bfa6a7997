"""Translates the committed offsets of consumer groups, so that consumers can move to the target.

A group that has members on the target is skipped, as is one that is ahead there.

Offsets of the source, in the origin headers, only grow within a target partition, so a binary
search finds the first record at or after a source offset. Records without the header may be
anywhere between: a probe reads from its middle to the first record with one. The translated offset
is that of the first record found, or the end of the log: what is not copied yet will be at that
offset or later.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from barnabas.admin.group_offsets import commit_offsets, group_offsets
from barnabas.admin.groups import list_groups
from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.admin.topics import describe_topics
from barnabas.aio import AIOKafkaConsumer
from barnabas.client.cluster_client import ClusterClient
from barnabas.mirror.client_options import ClientOptions
from barnabas.mirror.clusters import open_clusters, start_client
from barnabas.mirror.positions import TOPIC_PREFIX
from barnabas.mirror.provenance import origin_offset
from barnabas.mirror.replication_policy import TopicFilter
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.patterns import compile_pattern

PROBE_OPTIONS = {
    "max.partition.fetch.bytes": "65536",  # a probe looks for one record
    "fetch.max.wait.ms": "10",  # a fetch that waits at the end would delay the next probe
    "isolation.level": "read_committed",
}
WAIT_MS = 500.0

COMMITTED, TRANSLATED, KEPT = "committed", "translated", "kept"
NO_TOPIC = "no such partition on the target"


SCAN_MAX = 64
"""Up to this many offsets are scanned rather than searched."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Look for the first record with an origin from `offset` on, before `end`."""

    offset: int
    end: int


class OffsetSearch:
    """One search; `probe` is what to read next, None when `answer` is final."""

    def __init__(self, wanted: int, start: int, end: int) -> None:
        """Look for the first record at or after source offset `wanted`, in offsets start to end."""
        assert start <= end
        self._wanted = wanted
        self._low = start  # every origin before it is below the wanted offset
        self._high = end  # no record with an origin is from here up to the answer
        self._asked = start
        self.answer = end

    @property
    def probe(self) -> Probe | None:
        """What to read next."""
        width = self._high - self._low
        if width <= 0:
            return None
        self._asked = self._low if width <= SCAN_MAX else self._low + width // 2
        return Probe(self._asked, self._high)

    def found(self, offset: int, source_offset: int) -> None:
        """Record the first record with an origin from the probe's offset on."""
        assert self._asked <= offset < self._high
        if source_offset < self._wanted:
            self._low = offset + 1
        else:
            self.answer, self._high = offset, self._asked

    def found_nothing(self) -> None:
        """Record that there is no record with an origin between the probe and its end."""
        self._high = self._asked


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """An offset that a group has committed on the source."""

    group: str
    partition: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True)
class TranslatedOffset:
    """A group offset on the target; `target_offset` is None if the partition does not exist."""

    committed: GroupOffset
    target: TopicPartition
    target_offset: int | None
    outcome: str


async def translate_groups(
    source_options: ClientOptions,
    target_options: ClientOptions,
    topics: TopicFilter,
    groups: Iterable[str],
    *,
    exclude: Iterable[str] = (),
    dry_run: bool = False,
    rewind: bool = False,
) -> list[TranslatedOffset]:
    """Translate the offsets of groups (patterns of names), and commit them on the target."""
    patterns = [compile_pattern(text) for text in groups]
    excluded = [compile_pattern(text) for text in exclude]
    async with AsyncExitStack() as stack:
        source, target, source_id, _ = await stack.enter_async_context(
            open_clusters(source_options, target_options, topics)
        )
        names = [
            group.name
            for group in await list_groups(source)
            if any(pattern.fullmatch(group.name) for pattern in patterns)
            and not any(pattern.fullmatch(group.name) for pattern in excluded)
            and not group.name.startswith(TOPIC_PREFIX)  # checkpoints of a mirror
        ]
        offsets = [
            GroupOffset(name, partition, committed.offset)
            for name in names
            for partition, committed in (await group_offsets(source, name)).items()
            if topics.replicates(partition.topic)
        ]
        options = target_options.target_consumer | PROBE_OPTIONS
        consumer = await start_client(stack, AIOKafkaConsumer(**options))
        translated = await _translate(consumer, target, topics, offsets, source_id)
        if dry_run:
            return translated
        return await _commit(target, translated, rewind=rewind)


async def _translate(
    consumer: AIOKafkaConsumer,
    client: ClusterClient,
    topics: TopicFilter,
    offsets: list[GroupOffset],
    source_id: str,
) -> list[TranslatedOffset]:
    existing = {
        TopicPartition(view.name, index)
        for view in await describe_topics(client, None)
        for index in view.partitions
    }
    targets = {
        each.partition: TopicPartition(
            topics.target_topic(each.partition.topic), each.partition.partition
        )
        for each in offsets
    }
    known = [target for target in targets.values() if target in existing]
    starts = await list_offsets(client, dict.fromkeys(known, EARLIEST)) if known else {}
    ends = await list_offsets(client, dict.fromkeys(known, LATEST), committed=True) if known else {}
    answers: dict[tuple[TopicPartition, int], int] = {}
    translated = []
    for each in offsets:
        target = targets[each.partition]
        if target not in existing:
            translated.append(TranslatedOffset(each, target, None, NO_TOPIC))
            continue
        key = (target, each.offset)
        if key not in answers:  # groups that are up to date share their offsets
            search = OffsetSearch(each.offset, starts[target].offset, ends[target].offset)
            answers[key] = await _search(consumer, target, search, source_id)
        translated.append(TranslatedOffset(each, target, answers[key], TRANSLATED))
    return translated


async def _search(
    consumer: AIOKafkaConsumer, target: TopicPartition, search: OffsetSearch, source_id: str
) -> int:
    consumer.assign([target])
    while (probe := search.probe) is not None:
        found = await _first_with_origin(consumer, target, probe, source_id)
        if found is None:
            search.found_nothing()
        else:
            search.found(*found)
    return search.answer


async def _first_with_origin(
    consumer: AIOKafkaConsumer, target: TopicPartition, probe: Probe, source_id: str
) -> tuple[int, int] | None:
    """Return the target and the source offset of the first record that came from the source."""
    consumer.seek(target, probe.offset)
    while await consumer.position(target) < probe.end:
        records = (await consumer.getmany(timeout_ms=WAIT_MS, max_records=500)).get(target, ())
        for record in records:
            if record.offset >= probe.end:
                return None
            origin = origin_offset(record.headers, source_id)
            if origin is not None:
                return record.offset, origin
    return None


async def _commit(
    client: ClusterClient, translated: list[TranslatedOffset], *, rewind: bool
) -> list[TranslatedOffset]:
    done = []
    for group in dict.fromkeys(each.committed.group for each in translated):
        present = await group_offsets(client, group)
        mine = [each for each in translated if each.committed.group == group]
        wanted: dict[TopicPartition, int] = {}
        for each in mine:
            before = present.get(each.target)
            if each.target_offset is None:
                continue
            if before is None or before.offset < each.target_offset or rewind:
                wanted[each.target] = each.target_offset
        failures = await commit_offsets(client, group, wanted) if wanted else {}
        done += [_outcome(each, wanted, failures) for each in mine]
    return done


def _outcome(
    each: TranslatedOffset,
    wanted: dict[TopicPartition, int],
    failures: dict[TopicPartition, RequestError | None],
) -> TranslatedOffset:
    outcome = each.outcome
    if each.target_offset is not None:
        failure = failures.get(each.target)
        outcome = KEPT if each.target not in wanted else str(failure) if failure else COMMITTED
    return TranslatedOffset(each.committed, each.target, each.target_offset, outcome)
