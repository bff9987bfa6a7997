"""Topics: the list, a new one, and deletion of several."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from barnabas.admin.log_dirs import describe_log_dirs_of
from barnabas.admin.offsets import EARLIEST, LATEST, find_offsets
from barnabas.admin.topics import NewTopic, create_topics
from barnabas.client.cluster_client import ClusterClient
from barnabas.console.context import Context
from barnabas.console.listing import (
    FORMATS,
    PAGE_ROWS,
    Column,
    Listing,
    Row,
    both,
    page_of,
    respond,
)
from barnabas.console.live import lively
from barnabas.console.rendering import counted
from barnabas.console.segments import segment
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition

OFFSETS_MS = 1_500
PARTITIONS_MAX = 2_000
"""Of a page: with more, the offsets of its topics are not asked for."""

SORTED_AT_ONCE_MAX = 2_000
"""Rows that are sorted on the loop; more are sorted on a thread."""
FIELDS = ("name", "partitions", "replicas", "configs")
COLUMNS = (
    Column("name", "Topic", sorts=True, link="href"),
    Column("partitions", "Partitions", "number", sorts=True),
    Column("replicas", "Replicas", "number", sorts=True),
    Column("offsets", "Offsets", "number"),
    Column("bytes", "Bytes", "size"),
    Column("bytes_in", "In/s", "size"),
    Column("bytes_out", "Out/s", "size"),
    Column("under_replicated", "Under-replicated", "number", sorts=True),
    Column("offline", "No leader", "number", sorts=True),
    Column("not_preferred", "Not preferred", "number", sorts=True),
    Column("kind", "Kind"),
)


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def topics(request: Request) -> Response:
        session = context.session(request)
        q = request.query_params.get("q", "")
        internal = request.query_params.get("internal", "yes") != "no"
        rows: list[Row] = []
        # In the order of names a page is found at once, however many topics there are.
        in_order = request.query_params.get("sort", "name") == "name"
        pages = in_order and not request.url.path.endswith(FORMATS)
        after = request.query_params.get("after", "") if pages else ""
        more = False
        async for topic in context.door.topics(session.visitor, after=after, containing=q):
            if topic.internal and not internal:
                continue
            if pages and len(rows) == PAGE_ROWS:
                more = True
                break
            rows.append(
                {
                    "name": topic.name,
                    "href": f"/topics/{segment(topic.name)}",
                    "partitions": topic.partitions,
                    "replicas": topic.replicas,
                    "offsets": None,
                    "bytes": None,
                    "bytes_in": None,
                    "bytes_out": None,
                    "under_replicated": topic.under_replicated,
                    "offline": topic.offline,
                    "not_preferred": topic.not_preferred,
                    "kind": "internal" if topic.internal else "",
                    "level": "bad" if topic.offline else "warn" if topic.under_replicated else "",
                }
            )
        listing = Listing(
            "Topics",
            "/topics",
            COLUMNS,
            rows,
            caption=caption(len(rows), q, partial=bool(after) or more),
            empty="There are no topics, or none that you may see.",
            command="barnabas topics list",
            q=q,
            searches=True,
            filters={} if internal else {"internal": "no"},
            live=True,
        )
        if len(rows) > SORTED_AT_ONCE_MAX:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, page_of, rows, listing, request)
        else:
            page_of(rows, listing, request)
        if more:
            listing.next = rows[-1]["name"]
        await asyncio.gather(
            add_offsets(session.client, listing.rows), add_sizes(session.client, listing.rows)
        )
        add_rates(context, listing.rows)
        return respond(context, request, listing, "topics.html")

    async def new(request: Request) -> Response:
        return context.templates.page(
            request, "topic_new.html", {"form": dict.fromkeys(FIELDS, ""), "error": ""}
        )

    async def create(request: Request) -> Response:
        form = await context.form(request)
        name = form.get("name").strip()
        given = {key: form.get(key) for key in FIELDS}
        try:
            topic = NewTopic(
                name,
                whole(form.get("partitions"), "partitions", -1),
                whole(form.get("replicas"), "replicas", -1),
                topic_configs=parse_configs(form.get("configs")),
            )
            [created] = await create_topics(context.session(request).client, [topic])
            if created.error is not None:
                raise created.error
        except (BarnabasError, HTTPException) as failure:
            text = failure.detail if isinstance(failure, HTTPException) else str(failure)
            return context.templates.page(
                request, "topic_new.html", {"form": given, "error": text}, status=409
            )
        return RedirectResponse(f"/topics/{segment(name)}", 303)

    return [
        *(Route(path, lively(context, topics), methods=["GET"]) for path in both("/topics")),
        Route("/topics", create, methods=["POST"]),
        Route("/new-topic", new),
    ]


def caption(count: int, q: str, *, partial: bool) -> str:
    """Return what a page of the list is of."""
    named = f" with {q!r} in their names" if q else ""
    return (
        f"{count:,} of the topics{named}, by name" if partial else counted(count, "topic") + named
    )


async def add_offsets(client: ClusterClient, rows: Sequence[Row]) -> None:
    """Add to the rows of one page how many offsets their logs keep."""
    if sum(row["partitions"] for row in rows) > PARTITIONS_MAX:
        return
    # What has no leader would be waited for.
    led = [row for row in rows if not row["offline"]]
    wanted = [
        TopicPartition(row["name"], index) for row in led for index in range(row["partitions"])
    ]
    if not wanted:
        return
    try:
        starts, ends = await asyncio.gather(
            find_offsets(client, dict.fromkeys(wanted, EARLIEST), timeout_ms=OFFSETS_MS),
            find_offsets(client, dict.fromkeys(wanted, LATEST), timeout_ms=OFFSETS_MS),
        )
    except BarnabasError:
        return
    for row in led:
        total = 0
        for index in range(row["partitions"]):
            partition = TopicPartition(row["name"], index)
            start, end = starts[partition], ends[partition]
            if isinstance(start, RequestError) or isinstance(end, RequestError):
                break
            total += end.offset - start.offset
        else:
            row["offsets"] = total


async def add_sizes(client: ClusterClient, rows: Sequence[Row]) -> None:
    """Add to the rows of one page how large all replicas are together, as far as that is known."""
    if sum(row["partitions"] for row in rows) > PARTITIONS_MAX or not rows:
        return
    wanted = [
        TopicPartition(row["name"], index) for row in rows for index in range(row["partitions"])
    ]
    try:
        found = await describe_log_dirs_of(client, None, wanted, timeout_ms=OFFSETS_MS)
    except BarnabasError:
        return
    totals: Counter[str] = Counter()
    for directories in found.values():
        if isinstance(directories, RequestError):
            return  # a sum of some brokers would be wrong
        for directory in directories:
            for replica in directory.replicas:
                totals[replica.partition.topic] += replica.size_bytes
    for row in rows:
        row["bytes"] = totals[row["name"]]


def add_rates(context: Context, rows: Sequence[Row]) -> None:
    """Add to the rows of one page what passes this broker, known after two looks."""
    if len(rows) > PAGE_ROWS:  # a file of all of them is no look
        return
    now_s = asyncio.get_running_loop().time()
    for row in rows:
        counts = context.window.topic_counts(row["name"])
        key = "bytes", row["name"]
        context.rates.note(key, now_s, counts.bytes_in, counts.bytes_out, counts.messages_in)
        found = context.rates.per_second(key)
        if found is not None:
            row["bytes_in"], row["bytes_out"], _ = found


def whole(text: str, what: str, default: int | None = None) -> int:
    """Return a whole number from a form; raise HTTPException(400)."""
    text = text.strip()
    if not text and default is not None:
        return default
    if not text.lstrip("-").isdecimal() or not text.isascii() or len(text) > 20:
        raise HTTPException(400, f"{what}: {text!r} is not a whole number.")
    return int(text)


def parse_configs(text: str) -> dict[str, str]:
    """Parse lines of `name=value`; raise HTTPException(400)."""
    configs: dict[str, str] = {}
    for line in text.split("\n"):
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise HTTPException(400, f"Configs: {line!r} must be written name=value.")
        configs[name.strip()] = value.strip()
    return configs
