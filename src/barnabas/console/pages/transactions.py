"""Transactions: those that are open by age, and aborting one on its partitions."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.transactions import (
    OpenTransaction,
    abort_transaction,
    describe_transaction,
    describe_transactions,
    list_transactions_of,
    open_transactions,
)
from barnabas.client.cluster_client import ClusterClient
from barnabas.console.actions import Plan, ask, report
from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, both, page_of, respond
from barnabas.console.live import lively
from barnabas.console.pages.hanging import command_of
from barnabas.console.segments import segment
from barnabas.model.errors import BarnabasError, RequestError

ASK_MS = 3_000
OPEN_STATES = ("Ongoing", "PrepareCommit", "PrepareAbort")
DESCRIBED_MAX = 100

COLUMNS = (
    Column("name", "Transactional id", sorts=True, link="href"),
    Column("state", "State", sorts=True),
    Column("age_ms", "Open for", "ms", sorts=True),
    Column("timeout_ms", "Time-out", "ms"),
    Column("partitions", "Partitions", "number"),
    Column("producer", "Producer"),
    Column("broker", "Coordinator", "number", sorts=True),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def transactions(request: Request) -> Response:
        client = context.session(request).client
        everything = request.query_params.get("all") == "yes"
        states = () if everything else OPEN_STATES
        rows: list[Row] = []
        missing = []
        found = await list_transactions_of(client, None, states=states, timeout_ms=ASK_MS)
        for broker_id, listed in found.items():
            if isinstance(listed, RequestError):
                missing.append(f"Broker {broker_id} did not say its transactions: {listed}")
                continue
            rows += [
                {
                    "name": each.transactional_id,
                    "href": f"/transactions/{segment(each.transactional_id)}",
                    "state": each.state,
                    "age_ms": None,
                    "timeout_ms": None,
                    "partitions": None,
                    "producer": str(each.producer_id),
                    "broker": broker_id,
                }
                for each in listed
            ]
        await add_ages(client, rows)
        listing = Listing(
            "Transactions",
            "/transactions",
            COLUMNS,
            rows,
            intro="Readers of committed records wait for the oldest one that is open in their "
            "partition.",
            caption=f"{len(rows):,} {'known' if everything else 'open'} transactions",
            empty="No transaction is open.",
            command="barnabas transactions list" + ("" if everything else " --state Ongoing"),
            missing=missing,
            live=True,
        )
        page_of(rows, listing, request, default="-age_ms")
        return respond(context, request, listing, "transactions.html")

    async def transaction(request: Request) -> Response:
        name = request.path_params["id"]
        client = context.session(request).client
        found = await describe_transaction(client, name)
        opened = await open_on_partitions(client, found.partitions, found.producer_id)
        return context.templates.page(
            request,
            "transaction.html",
            {
                "transaction": found,
                "opened": opened,
                "base": f"/transactions/{segment(name)}",
            },
        )

    async def abort(request: Request) -> Response:
        name = request.path_params["id"]
        form = await context.form(request)
        client = context.session(request).client
        base = f"/transactions/{segment(name)}"
        found = await describe_transaction(client, name)
        opened = await open_on_partitions(client, found.partitions, found.producer_id)
        if form.get("confirmed") == "yes":
            results: list[tuple[str, BaseException | None]] = []
            for each in opened:
                try:
                    await abort_transaction(client, each)
                except BarnabasError as failure:
                    results.append((str(each.partition), failure))
                else:
                    results.append((str(each.partition), None))
            return report(context, request, f"Abort {name}", results, base, done="aborted")
        plan = Plan(
            title=f"Abort {name}",
            text="An abort marker is written to each partition, whatever the coordinator thinks. "
            "This is for transactions that hang: of one that is alive, what was written so far is "
            "lost, and its producer may think that it was committed.",
            button="Abort it",
            action=f"{base}/abort",
            back=base,
            heads=["Topic", "Partition", "Open since offset", "Producer epoch"],
            rows=[
                [
                    each.partition.topic,
                    each.partition.partition,
                    each.start_offset,
                    each.producer_epoch,
                ]
                for each in opened
            ],
            needs="ALTER on the cluster, READ on the topics",
            command=command_of(opened[0]) if opened else "",
        )
        return ask(context, request, plan)

    one = "/transactions/{id:segment}"
    return [
        *(Route(path, lively(context, transactions)) for path in both("/transactions")),
        Route(one, transaction, methods=["GET"]),
        Route(f"{one}/abort", abort, methods=["POST"]),
    ]


async def add_ages(client: ClusterClient, rows: list[Row]) -> None:
    """Add to some transactions since when they are open, and where."""
    names = [row["name"] for row in rows][:DESCRIBED_MAX]
    if not names:
        return
    now_ms = time.time() * 1000
    found = await describe_transactions(client, names, timeout_ms=ASK_MS)
    for row in rows:
        each = found.get(row["name"])
        if each is None or isinstance(each, RequestError):
            continue
        row["timeout_ms"] = each.timeout_ms
        row["partitions"] = len(each.partitions)
        if each.start_ms is not None:
            row["age_ms"] = max(now_ms - each.start_ms, 0)


async def open_on_partitions(
    client: ClusterClient, partitions: tuple[object, ...], producer_id: int
) -> list[OpenTransaction]:
    """Return where a producer's transaction is open, according to the leaders."""
    if not partitions:
        return []
    found = await open_transactions(client, partitions)  # type: ignore[arg-type]
    return [each for each in found if each.producer_id == producer_id]
