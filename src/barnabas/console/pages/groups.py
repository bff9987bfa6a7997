"""Consumer groups: the list, and one of them with its members, lag, reset and deletion."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.group_offsets import CommittedOffset, list_group_offsets
from barnabas.admin.groups import (
    GroupDescription,
    GroupMember,
    describe_groups,
    list_groups_of,
)
from barnabas.admin.offsets import EARLIEST, LATEST, find_offsets
from barnabas.client.cluster_client import ClusterClient
from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.live import lively
from barnabas.console.pages.topic import failing
from barnabas.console.rates import drained_ms, trend
from barnabas.console.rendering import counted
from barnabas.console.segments import segment
from barnabas.diary.concerns import about_group
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
    Column("trend", "Lag"),
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
                    "trend": "",
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
            caption=counted(len(rows), "group"),
            empty="There are no groups, or none that you may see.",
            command="barnabas groups list",
            q=q,
            searches=True,
            missing=missing,
            live=True,
        )
        page_of(rows, listing, request)
        await add_lag(context, request, listing)
        return respond(context, request, listing)

    async def group(request: Request) -> Response:
        name = request.path_params["group"]
        client = context.session(request).client
        principal = context.session(request).visitor.principal
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
            page=f"/groups/{segment(name)}",
            caption=f"{counted(sum(row['lag'] or 0 for row in shown), 'offset')} behind in all",
            empty="The group has committed no offsets.",
            command=f"barnabas groups describe {shlex.quote(name)}",
        )
        movement = noted(context, request, name, shown)
        page_of(shown, listing, request, default="name", page_rows=500)
        if request.url.path.endswith((".json", ".csv")):
            return respond(context, request, listing)
        values: dict[str, Any] = {
            "group": found,
            "listing": listing,
            "movement": movement,
            "undo": context.undos.of(principal, name),
            "lag_failed": lag_failed,
            "base": f"/groups/{segment(name)}",
            "quoted": shlex.quote(name),
            "is_empty": found.state in EMPTY_STATES,
            "member_rows": [_member_row(found, each) for each in found.members],
            "topics": sorted({row["topic"] for row in shown}),
            "diary": await context.window.diary(DIARY_ROWS, about_group(name)),
        }
        return context.templates.page(request, "group.html", values, live="group_live.html")

    one = "/groups/{group:segment}"
    return [
        *(Route(path, lively(context, groups)) for path in both("/groups")),
        Route(one, lively(context, group), methods=["GET"]),
        Route(f"{one}/lag.json", group, methods=["GET"]),
        Route(f"{one}/lag.csv", group, methods=["GET"]),
    ]


def _member_row(group: GroupDescription, member: GroupMember) -> dict[str, Any]:
    """Return a member with what it holds, and what it has still to get or give up."""
    held, target = set(member.partitions or ()), set(member.target or ())
    moving = ""
    if member.target is not None and held != target:
        moving = f"gets {len(target - held)}, gives up {len(held - target)}"
    elif member.epoch is not None and member.epoch != group.assignment_epoch:
        moving = f"is at epoch {member.epoch} of {group.assignment_epoch}"
    return {
        "client_id": member.client_id,
        "host": member.host.removeprefix("/"),
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "partitions": member.partitions,
        "subscribed": ", ".join(member.subscribed_topics or ()) or member.subscribed_regex or "",
        "moving": moving,
    }


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
                "metadata": each.metadata,
                "end": None if isinstance(end, RequestError) else end.offset,
                "lag": lag,
                "lag_ms": None if behind_s is None else behind_s * 1000,
                "member": "",
            }
        )
    return rows


async def add_lag(context: Context, request: Request, listing: Listing) -> None:
    """Add the lag to the groups of one page."""
    client = context.session(request).client

    async def one(row: Row) -> None:
        rows = await failing(lag_rows(context, client, row["name"]))
        if isinstance(rows, BarnabasError):
            return
        movement = noted(context, request, row["name"], rows)
        row["lag"], row["lag_ms"] = movement["lag"], movement["lag_ms"]
        row["trend"] = movement["trend"]
        row["topics"] = len({each["topic"] for each in rows})

    await asyncio.gather(*(one(row) for row in listing.rows[:LAG_OF_PAGE_MAX]))


def noted(context: Context, request: Request, name: str, rows: Sequence[Row]) -> dict[str, Any]:
    """Return the lag of a group in all, how it moves, and when it is gone, from what was seen."""
    lags = [each["lag"] for each in rows]
    lag = None if None in lags else sum(lags)
    times = [each["lag_ms"] for each in rows if each["lag_ms"] is not None]
    read = written = None
    if rows and lag is not None:
        # Not everybody sees the same partitions of a group.
        key = "group", context.session(request).visitor.principal, name
        now_s = asyncio.get_running_loop().time()
        committed, ends = (sum(each[field] for each in rows) for field in ("committed", "end"))
        context.rates.note(key, now_s, len(rows), committed, ends)
        rates = context.rates.per_second(key)
        if rates is not None:
            _, read, written = rates
    return {
        "lag": lag,
        "lag_ms": max(times, default=None),
        "read": read,
        "written": written,
        "trend": trend(lag, read, written),
        "drained_ms": drained_ms(lag, read, written),
    }
