"""Moves of partitions between brokers: proposed, shown, started, watched, cancelled."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.moves.plan import Cost, Holding, cost_of, propose
from barnabas.admin.moves.progress import Progress, holdings, in_progress
from barnabas.admin.moves.throttles import clear_throttles, set_throttle
from barnabas.admin.reassignments import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from barnabas.client.cluster_client import ClusterClient
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.form import Form
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.live import lively
from barnabas.console.pages.topic import failing
from barnabas.console.pages.topics import whole
from barnabas.console.rendering import counted, number, size
from barnabas.console.segments import segment
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition

PARTITIONS_MAX = 1000
"""Of one plan: larger ones are for `barnabas reassign`, which keeps them in files."""
BACK = "/reassign"
NEEDS = "ALTER on the cluster"

COLUMNS = (
    Column("topic", "Topic", sorts=True, link="href"),
    Column("partition", "Partition", "number", sorts=True),
    Column("replicas", "Replicas now"),
    Column("target", "Then"),
    Column("copied", "Copied", "size"),
    Column("whole", "Of", "size", sorts=True),
    Column("share", "Share"),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def moves(request: Request) -> Response:
        client = context.session(request).client
        found: list[Progress] | BarnabasError = await failing(in_progress(client))
        missing = [str(found)] if isinstance(found, BarnabasError) else []
        rows = [] if isinstance(found, BarnabasError) else [_row(each) for each in found]
        listing = Listing(
            "Moves",
            "/reassign",
            COLUMNS,
            rows,
            intro="Partitions whose replicas go to other brokers, and how far they are.",
            caption=f"{counted(len(rows), 'partition')} on the move",
            empty="No partition is being moved.",
            command="barnabas reassign list",
            missing=missing,
            live=True,
        )
        page_of(rows, listing, request)
        values = {
            "topics": " ".join(request.query_params.getlist("topic")),
            "brokers": context.window.brokers(),
        }
        return respond(context, request, listing, "moves.html", values)

    async def start(request: Request) -> Response:
        form = await context.form(request)
        client = context.session(request).client
        throttle = form.get("throttle").strip()
        bytes_per_second = whole(throttle, "Limit") if throttle else 0
        if bytes_per_second < 0:
            raise HTTPException(400, "Limit: must be a number of bytes, or empty.")
        await check_free(client)
        if form.get("confirmed") == "yes":
            return await started(request, client, form, bytes_per_second)
        topics = names_in(form.get("topics"))
        present = await held(client, topics)
        racks = racks_of(context, form)
        loop = asyncio.get_running_loop()
        try:
            proposed = await loop.run_in_executor(None, propose, present, racks)
        except ValueError as failure:
            raise HTTPException(400, str(failure)) from None
        cost = cost_of(present, proposed)
        if not cost.moves:
            return report(
                context, request, "Moves", [("These topics", None)], BACK, done="spread already"
            )
        ids = ",".join(map(str, sorted(racks)))
        plan = Plan(
            title="Move partitions",
            text=summary(cost, bytes_per_second),
            button="Move them",
            action="/reassign/start",
            back=BACK,
            fields=[
                ("throttle", throttle),
                *(("move", written(each.partition, each.after)) for each in cost.moves),
            ],
            heads=["Topic", "Partition", "Replicas now", "Then", "To copy"],
            rows=[
                [
                    each.partition.topic,
                    each.partition.partition,
                    ", ".join(map(str, each.before)),
                    ", ".join(map(str, each.after)),
                    size(each.bytes_to_copy),
                ]
                for each in cost.moves
            ],
            needs=NEEDS,
            command=f"barnabas reassign generate {' '.join(f'--topic {each}' for each in topics)} "
            f"--brokers {ids} --output plan.json",
        )
        return ask(context, request, plan)

    async def started(
        request: Request, client: ClusterClient, form: Form, bytes_per_second: int
    ) -> Response:
        """Start exactly what the preview has shown."""
        targets = dict(read(text) for text in form.all("move"))
        present = await held(client, sorted({key.topic for key in targets}))
        for key in targets:
            if key not in present:
                raise HTTPException(404, f"Partition {key} does not exist any longer.")
        if bytes_per_second:
            await set_throttle(client, cost_of(present, targets).moves, bytes_per_second)
        answers = await alter_partition_reassignments(client, targets)
        topics = "&".join(f"topic={segment(each)}" for each in sorted({k.topic for k in targets}))
        return report(
            context,
            request,
            "Moves",
            [(str(key), failed) for key, failed in answers.items()],
            f"{BACK}?{topics}",
            done="its move has started",
        )

    async def cancel(request: Request) -> Response:
        form = await context.form(request)
        client = context.session(request).client
        moving = await list_partition_reassignments(client)
        if form.get("confirmed") == "yes":
            shown = {_partition(text) for text in form.all("partition")}
            wanted = [key for key in moving if key in shown]
            answers = (
                await alter_partition_reassignments(client, dict.fromkeys(wanted)) if wanted else {}
            )
            await clear_throttles(client, {key.topic for key in wanted})
            results = [(str(key), failed) for key, failed in answers.items()]
            return report(context, request, "Moves", results, BACK, done="cancelled")
        topics = set(names_in(form.get("topics"), required=False))
        wanted = sorted(key for key in moving if not topics or key.topic in topics)
        plan = Plan(
            title="Cancel moves",
            text="The partitions keep the replicas that they had. What was copied so far is "
            "deleted, and the limits of these moves are removed.",
            button="Cancel them",
            action="/reassign/cancel",
            back=BACK,
            fields=[("partition", f"{key.topic}:{key.partition}") for key in wanted],
            heads=["Topic", "Partition", "Added, and dropped again"],
            rows=[
                [key.topic, key.partition, ", ".join(map(str, moving[key].adding)) or "none"]
                for key in wanted
            ],
            needs=NEEDS,
            command="barnabas reassign cancel --all",
        )
        return ask(context, request, plan)

    async def unthrottle(request: Request) -> Response:
        form = await context.form(request)
        client = context.session(request).client
        topics = names_in(form.get("topics"))
        if form.get("confirmed") == "yes":
            removed = await clear_throttles(client, topics)
            what = "removed" if removed else "there were none"
            return report(context, request, "Limits", [("Limits", None)], BACK, done=what)
        plan = Plan(
            title="Remove the limits of moves",
            text="Replication of these topics is no longer slowed down, nor that of any broker.",
            button="Remove them",
            action="/reassign/unthrottle",
            back=BACK,
            fields=[("topics", " ".join(topics))],
            heads=["Topic"],
            rows=[[each] for each in topics],
            needs="ALTER_CONFIGS on the topics and the cluster",
            command="barnabas reassign verify plan.json",
        )
        return ask(context, request, plan)

    return [
        *(Route(path, lively(context, moves), methods=["GET"]) for path in both("/reassign")),
        Route("/reassign/start", start, methods=["POST"]),
        Route("/reassign/cancel", cancel, methods=["POST"]),
        Route("/reassign/unthrottle", unthrottle, methods=["POST"]),
    ]


async def check_free(client: ClusterClient) -> None:
    """Raise HTTPException(409) while other partitions are being moved."""
    moving = await list_partition_reassignments(client)
    if moving:
        raise HTTPException(
            409,
            f"{len(moving):,} partitions are being moved already, such as {min(moving)}: wait for "
            "them, or cancel them.",
        )


async def held(client: ClusterClient, topics: Sequence[str]) -> dict[TopicPartition, Holding]:
    """Return the present state of topics; raise HTTPException(400) if they are too large."""
    present = await holdings(client, topics)
    if len(present) > PARTITIONS_MAX:
        raise HTTPException(
            400,
            f"These topics have {len(present):,} partitions; the console moves {PARTITIONS_MAX:,} "
            "at a time. Choose fewer topics, or use barnabas reassign.",
        )
    return present


def racks_of(context: Context, form: Form) -> dict[int, str | None]:
    """Return the brokers that a form names, all live ones if none, with their racks."""
    live = {each.broker_id: each.rack for each in context.window.brokers()}
    wanted = [whole(text, "Brokers") for text in names_in(form.get("brokers"), required=False)]
    for broker_id in wanted:
        if broker_id not in live:
            raise HTTPException(400, f"Broker {broker_id} is not alive.")
    heeds = form.get("ignore-racks") != "yes"
    return {each: live[each] if heeds else None for each in wanted or sorted(live)}


def summary(cost: Cost, bytes_per_second: int) -> str:
    """Return what a plan means for each broker, and how long it takes at least."""
    parts = [f"{size(cost.bytes_to_copy)} are copied, for {len(cost.moves):,} partitions."]
    for broker_id, total in cost.brokers.items():
        parts.append(
            f"Broker {broker_id} receives {size(total.receives)}, sends {size(total.sends)} and "
            f"drops {number(total.drops)} replicas."
        )
    if bytes_per_second:
        largest = max((total.receives for total in cost.brokers.values()), default=0)
        parts.append(
            f"With {size(bytes_per_second)} a second that takes "
            f"{largest / bytes_per_second:,.0f} s at least. Remove the limit afterwards."
        )
    return " ".join(parts)


def names_in(text: str, *, required: bool = True) -> list[str]:
    """Return names that are separated by spaces or commas; raise HTTPException(400)."""
    found = list(dict.fromkeys(name for name in re.split(r"[\s,]+", text) if name))
    if required and not found:
        raise HTTPException(400, "Name at least one topic.")
    return found


def written(key: TopicPartition, replicas: Sequence[int]) -> str:
    """Return a target as a form carries it."""
    return f"{key.topic}:{key.partition}:{','.join(map(str, replicas))}"


def read(text: str) -> tuple[TopicPartition, tuple[int, ...]]:
    """Return the target that a form carries; raise HTTPException(400)."""
    place, _, listed = text.rpartition(":")
    ids = listed.split(",")
    if not all(each.isascii() and each.isdecimal() and len(each) < 10 for each in ids):
        raise HTTPException(400, f"{text!r} is not TOPIC:PARTITION:BROKER,BROKER.")
    return _partition(place), tuple(map(int, ids))


def _partition(text: str) -> TopicPartition:
    topic, _, index = text.rpartition(":")
    if not topic or not index.isascii() or not index.isdecimal() or len(index) > 9:
        raise HTTPException(400, f"{text!r} is not TOPIC:PARTITION.")
    return TopicPartition(topic, int(index))


def _row(moving: Progress) -> Row:
    key = moving.partition
    return {
        "name": f"{key.topic} {key.partition:09}",
        "topic": key.topic,
        "href": f"/topics/{segment(key.topic)}",
        "partition": key.partition,
        "replicas": ", ".join(map(str, moving.replicas)),
        "target": ", ".join(map(str, moving.target)),
        "copied": moving.copied_bytes,
        "whole": moving.total_bytes,
        "share": moving.share_text or "",
    }
