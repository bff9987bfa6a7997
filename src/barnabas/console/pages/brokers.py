"""Brokers: the list, and one of them with its directories, request times and options."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.config_entries import ConfigResourceType, Resource
from barnabas.admin.configs import describe_configs
from barnabas.admin.log_dirs import LogDirectory, ReplicaSize, describe_log_dirs_of
from barnabas.admin.moves.progress import in_progress
from barnabas.admin.reassignments import list_partition_reassignments
from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, both, page_of, respond
from barnabas.console.live import lively
from barnabas.console.pages.overview import sees_broker
from barnabas.model.errors import BarnabasError, RequestError

ASK_MS = 3_000
"""How long a page waits for another broker."""

LIVE_S = 15.0
"""Each look asks every broker for the sizes of all its replicas."""

COLUMNS = (
    Column("name", "Broker", "number", sorts=True, link="href"),
    Column("host", "Address"),
    Column("rack", "Rack"),
    Column("role", "Role"),
    Column("replicas", "Replicas", "number", sorts=True),
    Column("bytes", "Bytes", "size", sorts=True),
    Column("free", "Free on disk", "size", sorts=True),
    Column("arriving", "Replicas arriving", "number", sorts=True),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def brokers(request: Request) -> Response:
        client = context.session(request).client
        live = context.window.brokers()
        found, moving = await asyncio.gather(
            describe_log_dirs_of(client, [each.broker_id for each in live], timeout_ms=ASK_MS),
            told(list_partition_reassignments(client)),
        )
        arriving = (
            None
            if isinstance(moving, BarnabasError)
            else Counter(broker_id for each in moving.values() for broker_id in each.adding)
        )
        rows, missing = [], []
        for each in live:
            directories = found.get(each.broker_id)
            if directories is None or isinstance(directories, RequestError):
                missing.append(f"Broker {each.broker_id} did not say what it stores: {directories}")
                directories = []
            rows.append(
                {
                    "name": each.broker_id,
                    "href": f"/brokers/{each.broker_id}",
                    "host": f"{each.host}:{each.port}",
                    "rack": each.rack,
                    "role": "controller" if each.is_controller else "",
                    "replicas": sum(len(one.replicas) for one in directories)
                    if directories
                    else None,
                    "bytes": sum(
                        replica.size_bytes for one in directories for replica in one.replicas
                    )
                    if directories
                    else None,
                    "arriving": None if arriving is None else arriving[each.broker_id],
                    "free": min(
                        (one.usable_bytes for one in directories if one.usable_bytes is not None),
                        default=None,
                    ),
                }
            )
        listing = Listing(
            "Brokers",
            "/brokers",
            COLUMNS,
            rows,
            caption="The brokers that are alive now",
            command="barnabas cluster describe",
            missing=missing,
            live=True,
        )
        page_of(rows, listing, request)
        return respond(context, request, listing)

    async def broker(request: Request) -> Response:
        number = request.path_params["number"]
        client, window = context.session(request).client, context.window
        found = next((each for each in window.brokers() if each.broker_id == number), None)
        if found is None:
            raise HTTPException(404, f"Broker {number} is not alive, or there is none of this id.")
        resource = Resource(ConfigResourceType.BROKER, str(number))
        directories, options, moving = await asyncio.gather(
            describe_log_dirs_of(client, [number], timeout_ms=ASK_MS),
            told(describe_configs(client, resource)),
            told(in_progress(client)),
        )
        here = directories.get(number)
        arriving = [] if isinstance(moving, BarnabasError) else moving
        values: dict[str, Any] = {
            "broker": found,
            "is_here": number == context.door.broker_id,
            "directories": here,
            "directories_failed": isinstance(here, RequestError),
            "relocations": relocations_in(here) if isinstance(here, list) else [],
            "arriving": [each for each in arriving if number in each.adding],
            "options": [each for each in options if each.source.name != "DEFAULT"]
            if isinstance(options, list)
            else [],
            "options_failed": options if isinstance(options, BarnabasError) else None,
            "times": window.request_times()
            if number == context.door.broker_id and sees_broker(context, request)
            else [],
        }
        return context.templates.page(request, "broker.html", values, live="broker_live.html")

    return [
        *(Route(path, lively(context, brokers, LIVE_S)) for path in both("/brokers")),
        Route("/brokers/{number:int}", lively(context, broker, LIVE_S)),
    ]


def relocations_in(directories: list[LogDirectory]) -> list[tuple[str, str, ReplicaSize, int]]:
    """Return where replicas are and where they go, what was copied, and of how much."""
    present = {
        held.partition: (each.path, held.size_bytes)
        for each in directories
        for held in each.replicas
        if not held.is_future
    }
    return [
        (present[held.partition][0], each.path, held, present[held.partition][1])
        for each in directories
        for held in each.replicas
        if held.is_future and held.partition in present
    ]


async def told(work: Any) -> Any:
    """Return the result of some work, or its failure."""
    try:
        return await work
    except BarnabasError as failure:
        return failure
