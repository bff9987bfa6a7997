"""Marks: what a lane reads before it copies, and writes with what it copied.

They are offsets of a group on the target (`Route.group`), as only these can be part of a
transaction and be read back, one partition at a time, while other transactions are open:

    positions topic, 0      offset: the number of the session whose mirror this is
    target partition        offset: the source's offset to read next; metadata: the topic's id

A session takes the mirror over in this order: it shuts the session before it out (their producer
has one transactional id), writes its own number, fences every lane, and then reads the positions.
A lane first fences who had it before, then reads the marks. So a lane of an earlier session has
committed before it was fenced, and the positions tell, or it finds a number that is not its own
and writes nothing. Brokers forget offsets of groups after a while, so the positions topic counts:
marks are written anew from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.admin.group_offsets import CommittedOffset, commit_offsets, list_group_offsets
from barnabas.admin.producers import fence_producers
from barnabas.admin.settling import settled_or_raise
from barnabas.aio import AIOKafkaProducer
from barnabas.client.cluster_client import ClusterClient
from barnabas.mirror.lanes import LANES, transactional_id
from barnabas.mirror.positions import Position
from barnabas.mirror.route import Route
from barnabas.model.errors import RequestError, RetriableError
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata


class MarksError(RetriableError):
    """Marks cannot be written, or are gone; a session that starts anew writes them all."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What was read: the session that has the mirror (None: none ever had), and positions."""

    session: int | None
    positions: Mapping[TopicPartition, Position]


def as_marks(
    route: Route, positions: Mapping[TopicPartition, Position]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return positions in the form of offsets."""
    return {
        route.target_of(each): OffsetAndMetadata(at.next_offset, at.topic_id, -1)
        for each, at in positions.items()
    }


async def read_marks(
    target: ClusterClient, route: Route, partitions: Iterable[TopicPartition]
) -> Marks:
    """Read the marks of partitions of the source; ends of transactions are waited for."""
    owner = TopicPartition(route.positions_topic, 0)
    wanted = [owner, *(route.target_of(each) for each in partitions)]
    answer = await list_group_offsets(target, {route.group: wanted}, require_stable=True)
    found: dict[TopicPartition, CommittedOffset] = settled_or_raise(
        settled_or_raise(answer)[route.group]
    )
    there = {each: mark for each, mark in found.items() if mark.offset >= 0}
    session = there.pop(owner, None)
    positions = {
        source: Position(mark.offset, mark.metadata)
        for each, mark in there.items()
        if (source := route.source_of(each)) is not None
    }
    return Marks(None if session is None else session.offset, positions)


async def write_marks(
    target: ClusterClient, route: Route, positions: Mapping[TopicPartition, Position]
) -> None:
    """Write marks while no lane is at work."""
    if not positions:
        return
    answers = await commit_offsets(target, route.group, as_marks(route, positions))
    for partition, failure in answers.items():
        if failure is not None:
            raise MarksError(f"the mark of {partition} cannot be written: {failure}") from failure


async def take_over(
    target: ClusterClient, route: Route, producer: AIOKafkaProducer, *, shared: bool
) -> int:
    """Shut lanes of earlier sessions out; return the number of the session that begins.

    `producer` is the mirror's own, which has shut earlier sessions out. Where lanes have never been
    at work, and are not going to be (`shared`), nothing is written.
    """
    before = (await read_marks(target, route, ())).session
    if before is None and not shared:
        return 0
    session = 1 if before is None else before + 1
    await write_session(route, producer, session)
    lanes = [transactional_id(route.positions_topic, lane) for lane in range(LANES)]
    for outcome in (await fence_producers(target, lanes)).values():
        if isinstance(outcome, RequestError):
            raise outcome
    return session


async def write_session(route: Route, producer: AIOKafkaProducer, session: int) -> None:
    """Write whose the mirror is; only the mirror's own producer can."""
    await producer.begin_transaction()
    mark = {TopicPartition(route.positions_topic, 0): OffsetAndMetadata(session, "", -1)}
    await producer.send_offsets_to_transaction(mark, route.group)
    await producer.commit_transaction()
