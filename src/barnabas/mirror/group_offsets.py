"""Groups' offsets from the source, as offsets of the target: so that readers can move over.

A group that somebody is in on the target is left alone, as is one that is further there already.
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
from barnabas.mirror.clients import Side
from barnabas.mirror.opening import clusters, started
from barnabas.mirror.positions import TOPIC_PREFIX
from barnabas.mirror.provenance import origin_offset
from barnabas.mirror.selection import Selection
from barnabas.mirror.translation import Probe, Search
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.patterns import compile_pattern

READER = {
    "max.partition.fetch.bytes": "65536",  # a probe looks for one record
    "fetch.max.wait.ms": "10",  # a fetch that waits at the end would hold the next probe up
    "isolation.level": "read_committed",
}
WAIT_MS = 500.0

COMMITTED, TRANSLATED, KEPT = "committed", "translated", "kept"
NO_TOPIC = "no such partition on the target"


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """Where a group is on the source."""

    group: str
    partition: TopicPartition
    offset: int


@dataclass(frozen=True, slots=True)
class Translated:
    """One offset of a group; `target_offset` is None where there is nothing to translate to."""

    place: GroupPlace
    target: TopicPartition
    target_offset: int | None
    outcome: str


async def translate_groups(
    source_side: Side,
    target_side: Side,
    selection: Selection,
    groups: Iterable[str],
    *,
    dry_run: bool = False,
    rewind: bool = False,
) -> list[Translated]:
    """Translate what groups (patterns of names) have committed, and commit it on the target."""
    patterns = [compile_pattern(text) for text in groups]
    async with AsyncExitStack() as stack:
        source, target, source_id, _ = await stack.enter_async_context(
            clusters(source_side, target_side, selection)
        )
        names = [
            group.name
            for group in await list_groups(source)
            if any(pattern.fullmatch(group.name) for pattern in patterns)
            and not group.name.startswith(TOPIC_PREFIX)  # marks of a mirror, not of a reader
        ]
        places = [
            GroupPlace(name, partition, committed.offset)
            for name in names
            for partition, committed in (await group_offsets(source, name)).items()
            if selection.wants(partition.topic)
        ]
        reader = await started(stack, AIOKafkaConsumer(**(target_side.reader | READER)))
        found = await _translate(reader, target, selection, places, source_id)
        if dry_run:
            return found
        return await _commit(target, found, rewind=rewind)


async def _translate(
    reader: AIOKafkaConsumer,
    client: ClusterClient,
    selection: Selection,
    places: list[GroupPlace],
    source_id: str,
) -> list[Translated]:
    there = {
        TopicPartition(view.name, index)
        for view in await describe_topics(client, None)
        for index in view.partitions
    }
    targets = {
        place.partition: TopicPartition(
            selection.target_name(place.partition.topic), place.partition.partition
        )
        for place in places
    }
    known = [target for target in targets.values() if target in there]
    starts = await list_offsets(client, dict.fromkeys(known, EARLIEST)) if known else {}
    ends = await list_offsets(client, dict.fromkeys(known, LATEST), committed=True) if known else {}
    answers: dict[tuple[TopicPartition, int], int] = {}
    translated = []
    for place in places:
        target = targets[place.partition]
        if target not in there:
            translated.append(Translated(place, target, None, NO_TOPIC))
            continue
        key = (target, place.offset)
        if key not in answers:  # groups that are up to date share their places
            search = Search(place.offset, starts[target].offset, ends[target].offset)
            answers[key] = await _search(reader, target, search, source_id)
        translated.append(Translated(place, target, answers[key], TRANSLATED))
    return translated


async def _search(
    reader: AIOKafkaConsumer, target: TopicPartition, search: Search, source_id: str
) -> int:
    reader.assign([target])
    while (probe := search.probe) is not None:
        found = await _first_stamped(reader, target, probe, source_id)
        if found is None:
            search.nothing()
        else:
            search.found(*found)
    return search.answer


async def _first_stamped(
    reader: AIOKafkaConsumer, target: TopicPartition, probe: Probe, source_id: str
) -> tuple[int, int] | None:
    """Return the offsets here and there of the first record that the source gave."""
    reader.seek(target, probe.offset)
    while await reader.position(target) < probe.end:
        records = (await reader.getmany(timeout_ms=WAIT_MS, max_records=500)).get(target, ())
        for record in records:
            if record.offset >= probe.end:
                return None
            origin = origin_offset(record.headers, source_id)
            if origin is not None:
                return record.offset, origin
    return None


async def _commit(
    client: ClusterClient, found: list[Translated], *, rewind: bool
) -> list[Translated]:
    done = []
    for group in dict.fromkeys(each.place.group for each in found):
        present = await group_offsets(client, group)
        mine = [each for each in found if each.place.group == group]
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
    each: Translated,
    wanted: dict[TopicPartition, int],
    failures: dict[TopicPartition, RequestError | None],
) -> Translated:
    outcome = each.outcome
    if each.target_offset is not None:
        failure = failures.get(each.target)
        outcome = KEPT if each.target not in wanted else str(failure) if failure else COMMITTED
    return Translated(each.place, each.target, each.target_offset, outcome)
