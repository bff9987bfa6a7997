"""Consumer groups: the list, and one of them with its members, lag, reset and deletion."""

from __future__ import annotations

import asyncio
import shlex
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.group_offsets import CommittedOffset, commit_offsets, list_group_offsets
from barnabas.admin.groups import delete_groups, describe_groups, list_groups_of
from barnabas.admin.offsets import EARLIEST, LATEST, find_offsets
from barnabas.admin.topic_descriptions import describe_topics
from barnabas.client.cluster_client import ClusterClient
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.pages.topic import failing
from barnabas.console.rendering import segment
from barnabas.console.reset import plan_reset
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition

ASK_MS = 3_000
LAG_OF_PAGE_MAX = 100
DIARY_ROWS = 20
EMPTY_STATES = ("Empty", "Dead")

COLUMNS = (
    Column("name", "Group", sorts=True, link="href"),
    Column("state", "State", sorts=True),
    Column("type", "Protocol", sorts=True),
    Column("lag", "Lag in offsets", "number"),
    Column("lag_ms", "Lag in time", "ms"),
    Column("topics", "Topics", "number"),
    Column("broker", "Coordinator", "number", sorts=True),
)
LAG_COLUMNS = (
    Column("topic", "Topic", sorts=True, link="href"),
    Column("partition", "Partition", "number"),
    Column("committed", "Committed", "number"),
    Column("end", "End offset", "number"),
    Column("lag", "Lag in offsets", "number", sorts=True),
    Column("lag_ms", "Lag in time", "ms", sorts=True),
    Column("member", "Member"),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def groups(request: Request) -> Response:
        client = context.session(request).client
        q = request.query_params.get("q", "")
        rows: list[Row] = []
        missing = []
        for broker_id, found in (await list_groups_of(client, timeout_ms=ASK_MS)).items():
            if isinstance(found, RequestError):
                missing.append(f"Broker {broker_id} did not say its groups: {found}")
                continue
            rows += [
                {
                    "name": each.name,
                    "href": f"/groups/{segment(each.name)}",
                    "state": each.state,
                    "type": each.type or each.protocol_type,
                    "lag": None,
                    "lag_ms": None,
                    "topics": None,
                    "broker": broker_id,
                }
                for each in found
                if q.lower() in each.name.lower()
            ]
        listing = Listing(
            "Groups",
            "/groups",
            COLUMNS,
            rows,
            caption=f"{len(rows):,} groups",
            empty="There are no groups, or none that you may see.",
            command="barnabas groups list",
            q=q,
            searches=True,
            missing=missing,
        )
        page_of(rows, listing, request)
        await add_lag(context, client, listing)
        return respond(context, request, listing)

    async def group(request: Request) -> Response:
        name = request.path_params["group"]
        client = context.session(request).client
        described, rows = await asyncio.gather(
            describe_groups(client, [name], timeout_ms=ASK_MS),
            failing(lag_rows(context, client, name)),
        )
        found = described[name]
        if isinstance(found, RequestError):
            raise found
        lag_failed = rows if isinstance(rows, BarnabasError) else None
        shown: list[Row] = [] if isinstance(rows, BarnabasError) else rows
        holders = {
            partition: member.client_id
            for member in found.members
            for partition in member.partitions or ()
        }
        for row in shown:
            row["member"] = holders.get(TopicPartition(row["topic"], row["partition"]), "")
        listing = Listing(
            f"Lag of {name}",
            f"/groups/{segment(name)}/lag",
            LAG_COLUMNS,
            shown,
            caption=f"{sum(row['lag'] or 0 for row in shown):,} offsets behind in all",
            empty="The group has committed no offsets.",
            command=f"barnabas groups describe {shlex.quote(name)}",
        )
        page_of(shown, listing, request, default="name", page_rows=500)
        if request.url.path.endswith((".json", ".csv")):
            return respond(context, request, listing)
        values: dict[str, Any] = {
            "group": found,
            "listing": listing,
            "lag_failed": lag_failed,
            "base": f"/groups/{segment(name)}",
            "quoted": shlex.quote(name),
            "is_empty": found.state in EMPTY_STATES,
            "topics": sorted({row["topic"] for row in shown}),
            "diary": context.window.diary(f"group:{name}", DIARY_ROWS),
        }
        return context.templates.page(request, "group.html", values)

    async def reset(request: Request) -> Response:
        name = request.path_params["group"]
        form = await context.form(request)
        client = context.session(request).client
        base = f"/groups/{segment(name)}"
        if form.get("confirmed") == "yes":
            # What was shown is done, not what the goal would mean by now.
            offsets = {}
            for text in form.all("move"):
                topic, partition, offset = _three(text)
                offsets[TopicPartition(topic, partition)] = offset
            outcomes = await commit_offsets(client, name, offsets)
            results = [(str(partition), failed) for partition, failed in outcomes.items()]
            return report(context, request, f"Offsets of {name}", results, base, done="reset")
        topic, goal = form.get("topic"), form.get("to")
        committed = {
            partition: each.offset
            for partition, each in (await committed_of(client, name)).items()
            if not topic or partition.topic == topic
        }
        wanted = list(committed)
        if topic:
            [described] = await describe_topics(client, [topic])
            if described.error is not None:
                raise described.error
            wanted = [TopicPartition(topic, each.index) for each in described.partitions]
        moves = await plan_reset(client, wanted, committed, goal)
        flag = f"--topic {shlex.quote(topic)}" if topic else "--all-topics"
        plan = Plan(
            title=f"Reset offsets of {name}",
            text="The group must have no members, or the broker rejects this. Note what is "
            "committed now if you may want to return.",
            button="Reset them",
            action=f"{base}/reset",
            back=base,
            fields=[
                ("move", f"{each.partition.topic}:{each.partition.partition}:{each.target}")
                for each in moves
            ],
            heads=["Topic", "Partition", "Committed now", "Then", "So it"],
            rows=[
                [
                    each.partition.topic,
                    each.partition.partition,
                    "–" if each.committed is None else each.committed,
                    each.target,
                    each.effect,
                ]
                for each in moves
            ],
            needs=f"READ on group {name} and on the topics",
            command=f"barnabas groups reset-offsets {shlex.quote(name)} {flag} "
            f"--to={shlex.quote(goal)} --execute",
        )
        return ask(context, request, plan)

    async def delete(request: Request) -> Response:
        name = request.path_params["group"]
        form = await context.form(request)
        client = context.session(request).client
        if form.get("confirmed") == "yes":
            [(_, failed)] = (await delete_groups(client, [name])).items()
            if failed is not None:
                raise failed
            return report(
                context, request, "Deleted", [(f"Group {name}", None)], "/groups", done="deleted"
            )
        committed = await committed_of(client, name)
        plan = Plan(
            title=f"Delete {name}",
            text="The group and all its committed offsets are deleted. A member that comes back "
            "begins where its auto.offset.reset says.",
            button="Delete it",
            action=f"/groups/{segment(name)}/delete",
            back=f"/groups/{segment(name)}",
            heads=["Topic", "Partition", "Committed"],
            rows=[[each.topic, each.partition, at.offset] for each, at in committed.items()],
            needs=f"DELETE on group {name}",
            command=f"barnabas groups delete {shlex.quote(name)}",
        )
        return ask(context, request, plan)

    one = "/groups/{group:segment}"
    return [
        *(Route(path, groups) for path in both("/groups")),
        Route(one, group, methods=["GET"]),
        Route(f"{one}/lag.json", group, methods=["GET"]),
        Route(f"{one}/lag.csv", group, methods=["GET"]),
        Route(f"{one}/reset", reset, methods=["POST"]),
        Route(f"{one}/delete", delete, methods=["POST"]),
    ]


def _three(text: str) -> tuple[str, int, int]:
    topic, _, rest = text.partition(":")
    partition, _, offset = rest.partition(":")
    if not partition.isdecimal() or not offset.isdecimal():
        raise HTTPException(400, f"{text!r} is not TOPIC:PARTITION:OFFSET.")
    return topic, int(partition), int(offset)


async def committed_of(client: ClusterClient, name: str) -> dict[TopicPartition, CommittedOffset]:
    """Return the committed offsets of a group; raise its failure."""
    found = (await list_group_offsets(client, {name: None}, timeout_ms=ASK_MS))[name]
    if isinstance(found, RequestError):
        raise found
    return {
        partition: each
        for partition, each in sorted(found.items())
        if not isinstance(each, RequestError) and each.offset >= 0
    }


async def lag_rows(context: Context, client: ClusterClient, name: str) -> list[Row]:
    """Return the lag of a group in each partition that it has committed to."""
    committed = await committed_of(client, name)
    starts, ends = await asyncio.gather(
        find_offsets(client, dict.fromkeys(committed, EARLIEST), timeout_ms=ASK_MS),
        find_offsets(client, dict.fromkeys(committed, LATEST), timeout_ms=ASK_MS),
    )
    seconds = context.window.lag_seconds(name)
    rows: list[Row] = []
    for partition, each in committed.items():
        start, end = starts[partition], ends[partition]
        lag = None
        if not isinstance(start, RequestError) and not isinstance(end, RequestError):
            lag = max(end.offset - max(each.offset, start.offset), 0)
        behind_s = seconds.get((partition.topic, partition.partition))
        if behind_s is None and lag == 0:
            behind_s = 0.0
        rows.append(
            {
                "name": f"{partition.topic} {partition.partition:09}",
                "topic": partition.topic,
                "href": f"/topics/{segment(partition.topic)}",
                "partition": partition.partition,
                "committed": each.offset,
                "end": None if isinstance(end, RequestError) else end.offset,
                "lag": lag,
                "lag_ms": None if behind_s is None else behind_s * 1000,
                "member": "",
            }
        )
    return rows


async def add_lag(context: Context, client: ClusterClient, listing: Listing) -> None:
    """Add the lag to the groups of one page."""

    async def one(row: Row) -> None:
        rows = await failing(lag_rows(context, client, row["name"]))
        if isinstance(rows, BarnabasError):
            return
        lags = [each["lag"] for each in rows]
        times = [each["lag_ms"] for each in rows if each["lag_ms"] is not None]
        row["lag"] = None if None in lags else sum(lags)
        row["lag_ms"] = max(times, default=None)
        row["topics"] = len({each["topic"] for each in rows})

    await asyncio.gather(*(one(row) for row in listing.rows[:LAG_OF_PAGE_MAX]))
