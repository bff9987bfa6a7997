"""Hanging transactions: open on a partition, and unknown to every coordinator."""

from __future__ import annotations

import shlex
import time

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.hanging import find_hanging
from barnabas.admin.transactions import OpenTransaction, abort_transaction
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.pages.topic import described
from barnabas.console.segments import segment
from barnabas.model.errors import BarnabasError

BACK = "/hanging-transactions"
SILENT_MS = 15 * 60_000
"""The default of transaction.max.timeout.ms: no transaction that is alive is silent for longer."""

COLUMNS = (
    Column("partition", "Partition", link="href"),
    Column("start", "First offset", "text"),
    Column("producer", "Producer", "text"),
    Column("epoch", "Epoch", "number"),
    Column("last_ms", "Last record", "time", sorts=True),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def hanging(request: Request) -> Response:
        topic = request.query_params.get("topic", "").strip()
        rows = [_row(each) for each in await found_in(request, topic)] if topic else []
        listing = Listing(
            "Hanging transactions",
            BACK,
            COLUMNS,
            rows,
            intro="A transaction hangs if its partition has it open, and no coordinator will end "
            "it. Readers of committed records wait for it forever. Its producer has been silent "
            f"for {SILENT_MS // 60_000} minutes at least.",
            caption=f"Those in topic {topic}" if topic else "Choose a topic",
            empty="None hangs." if topic else "Name a topic to look in.",
            command=f"barnabas transactions find-hanging --topic {shlex.quote(topic)}"
            if topic
            else "barnabas transactions find-hanging",
            filters={"topic": topic},
        )
        page_of(rows, listing, request)
        return respond(context, request, listing, "hanging.html", {"topic": topic})

    async def abort(request: Request) -> Response:
        form = await context.form(request)
        client = context.session(request).client
        topic = form.get("topic").strip()
        found = await found_in(request, topic)
        if form.get("confirmed") == "yes":
            wanted = set(form.all("open"))
            results: list[tuple[str, BaseException | None]] = []
            for each in found:
                if _text(each) not in wanted:
                    continue
                try:
                    await abort_transaction(client, each)
                except BarnabasError as failure:
                    results.append((str(each.partition), failure))
                else:
                    results.append((str(each.partition), None))
            back = f"{BACK}?topic={segment(topic)}"
            return report(context, request, "Hanging transactions", results, back, done="aborted")
        plan = Plan(
            title=f"Abort the hanging transactions of {topic}",
            text="An abort marker is written to each partition. No coordinator knows of them, so "
            "nothing else will end them.",
            button="Abort them",
            action=f"{BACK}/abort",
            back=BACK,
            fields=[("topic", topic), *(("open", _text(each)) for each in found)],
            heads=["Partition", "Open since offset", "Producer", "Epoch"],
            rows=[
                [str(each.partition), each.start_offset, each.producer_id, each.producer_epoch]
                for each in found
            ],
            needs=f"ALTER on the cluster, READ on topic {topic}",
            command=command_of(found[0]) if found else "",
        )
        return ask(context, request, plan)

    async def found_in(request: Request, topic: str) -> list[OpenTransaction]:
        if not topic:
            raise HTTPException(400, "Name a topic to look in.")
        client = context.session(request).client
        await described(client, topic)  # raises if there is none
        return await find_hanging(client, topic, None, int(time.time() * 1000) - SILENT_MS)

    return [
        *(Route(path, hanging, methods=["GET"]) for path in both(BACK)),
        Route(f"{BACK}/abort", abort, methods=["POST"]),
    ]


def _row(opened: OpenTransaction) -> Row:
    return {
        "name": f"{opened.partition.partition:09} {opened.start_offset}",
        "partition": str(opened.partition),
        "href": f"/topics/{segment(opened.partition.topic)}/records?from=offset"
        f"&partition={opened.partition.partition}&offset={opened.start_offset}",
        "start": str(opened.start_offset),
        "producer": str(opened.producer_id),
        "epoch": opened.producer_epoch,
        "last_ms": opened.last_timestamp_ms,
    }


def _text(opened: OpenTransaction) -> str:
    """Return a transaction as a form carries it."""
    return f"{opened.partition} {opened.start_offset} {opened.producer_id}"


def command_of(opened: OpenTransaction) -> str:
    """Return the command that aborts a transaction on its partition."""
    topic, number = opened.partition
    return (
        f"barnabas transactions abort {shlex.quote(topic)} --partition {number} "
        f"--start-offset {opened.start_offset}"
    )
