"""Elections: partitions with another leader than the preferred one, or none; and what happened."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.reassignments import ElectionType, elect_leaders
from barnabas.admin.topic_descriptions import describe_topics
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.live import lively
from barnabas.console.pages.overview import sees_broker
from barnabas.console.pages.topic import state_of
from barnabas.console.rendering import counted
from barnabas.console.segments import segment
from barnabas.console.subject_links import why
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition

TOPICS_MAX = 200
"""Topics of one page whose partitions are described."""
PARTITIONS_MAX = 1000
"""Partitions of one election."""
DIARY_ROWS = 200
BACK = "/elections"
NEEDS = "ALTER on the cluster"
EVENTS = ("leader.elected", "partition.offline", "controller.elected", "controller.resigned")

COLUMNS = (
    Column("partition", "Partition", link="href"),
    Column("state", "State", sorts=True),
    Column("leader", "Leader", "number", sorts=True),
    Column("preferred", "Preferred", "number", sorts=True),
    Column("isr", "In sync"),
    Column("election", "What an election does"),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def elections(request: Request) -> Response:
        rows, missing = await rows_of(context, request)
        listing = Listing(
            "Elections",
            "/elections",
            COLUMNS,
            rows,
            intro="Partitions that have no leader, or another one than their first replica. "
            "New leaders are elected without help when one fails; the preferred ones lead again "
            "after some time if auto.leader.rebalance.enable=true.",
            caption=counted(len(rows), "partition"),
            empty="Every partition that you may see is led by its preferred replica.",
            command="barnabas elect --all",
            missing=missing,
            live=True,
        )
        page_of(rows, listing, request)
        history = (
            await context.window.diary(DIARY_ROWS, lambda entry: entry.event in EVENTS)
            if sees_broker(context, request)
            else None
        )
        values = {
            "history": history,
            "has_offline": any(row["leader"] is None for row in rows),
            "has_others": any(row["leader"] is not None for row in rows),
        }
        return respond(context, request, listing, "elections.html", values)

    async def elect(request: Request) -> Response:
        form = await context.form(request)
        client = context.session(request).client
        unclean = form.get("kind") == "unclean"
        kind = ElectionType.UNCLEAN if unclean else ElectionType.PREFERRED
        if form.get("confirmed") == "yes":
            wanted = [_partition(text) for text in form.all("partition")[:PARTITIONS_MAX]]
            outcomes = await elect_leaders(client, wanted, kind)
            results = [(str(each), _failure(failed)) for each, failed in outcomes.items()]
            return report(context, request, "Elections", results, BACK, done="has its leader")
        rows, _ = await rows_of(context, request)
        rows = [row for row in rows if (row["leader"] is None) is unclean][:PARTITIONS_MAX]
        if not rows:
            return report(
                context, request, "Elections", [("Every partition", None)], BACK, done="needs none"
            )
        plan = Plan(
            title="Unclean election" if unclean else "Elect the preferred leaders",
            text="A replica that is alive becomes the leader although it was not in sync. Records "
            "that it does not have are lost for good, also those that producers with acks=all were "
            "told to be written. Prefer to start the brokers that were in sync."
            if unclean
            else "Each partition's first replica becomes its leader if it is in sync. Clients "
            "follow within moments.",
            button="Elect them, and lose what they do not have" if unclean else "Elect them",
            action="/elections/elect",
            back=BACK,
            fields=[
                ("kind", "unclean" if unclean else "preferred"),
                *(("partition", row["partition"]) for row in rows),
            ],
            heads=["Partition", "Leader now", "Preferred", "In sync", "So"],
            rows=[
                [
                    row["partition"],
                    "none" if row["leader"] is None else row["leader"],
                    row["preferred"],
                    row["isr"] or "none",
                    row["election"],
                ]
                for row in rows
            ],
            needs=NEEDS,
            command="barnabas elect --all" + (" --unclean" if unclean else ""),
        )
        return ask(context, request, plan)

    return [
        *(Route(path, lively(context, elections), methods=["GET"]) for path in both("/elections")),
        Route("/elections/elect", elect, methods=["POST"]),
    ]


async def rows_of(context: Context, request: Request) -> tuple[list[Row], list[str]]:
    """Return the partitions without their preferred leader, and what was left out."""
    session = context.session(request)
    alive = {each.broker_id for each in context.window.brokers()}
    names: list[str] = []
    more = 0
    async for topic in context.door.topics(session.visitor):
        if topic.offline or topic.not_preferred:
            if len(names) < TOPICS_MAX:
                names.append(topic.name)
            else:
                more += 1
    if not names:
        return [], []
    rows: list[Row] = []
    for found in await describe_topics(session.client, names):
        for each in found.partitions if found.error is None else ():
            # Too few in sync matters here only if the leader is another one, too.
            led = each.leader_id >= 0
            preferred = each.replicas[0] if each.replicas else -1
            if led and each.leader_id == preferred:
                continue
            key = TopicPartition(found.name or "", each.index)
            rows.append(
                {
                    "name": f"{key.topic} {key.partition:09}",
                    "partition": f"{key.topic}-{key.partition}",
                    "href": why("partition", f"{key.topic}-{key.partition}"),
                    "topic_href": f"/topics/{segment(key.topic)}",
                    "state": state_of(each),
                    "leader": each.leader_id if led else None,
                    "preferred": preferred,
                    "isr": ", ".join(map(str, each.in_sync)),
                    "election": _effect(led, preferred, each.in_sync, each.replicas, alive),
                    "level": "" if led else "bad",
                }
            )
    left_out = [f"{more:,} further topics have such partitions, too."] if more else []
    return rows, left_out


def _effect(
    led: bool,
    preferred: int,
    in_sync: Iterable[int],
    replicas: Iterable[int],
    alive: set[int],
) -> str:
    if led:
        if preferred in in_sync and preferred in alive:
            return f"broker {preferred} becomes the leader"
        return f"nothing: broker {preferred} is {'not in sync' if preferred in alive else 'gone'}"
    candidates = [each for each in replicas if each in alive]
    if not candidates:
        return "nothing: no replica is alive"
    return f"an unclean one: broker {candidates[0]} leads with what it has"


def _failure(failed: RequestError | None) -> RequestError | None:
    return None if failed is None or failed.code is ErrorCode.ELECTION_NOT_NEEDED else failed


def _partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    if not topic or not number.isascii() or not number.isdecimal() or len(number) > 9:
        raise HTTPException(400, f"{text[:40]!r} is not TOPIC-N.")
    return TopicPartition(topic, int(number))
