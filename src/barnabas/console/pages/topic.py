"""One topic: its partitions, the bad ones first, its rates, options and users."""

from __future__ import annotations

import asyncio
import shlex
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.admin.acls import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePatternFilter,
    ResourceType,
    describe_acls,
)
from barnabas.admin.config_entries import (
    ConfigEntry,
    ConfigResourceType,
    Resource,
)
from barnabas.admin.configs import describe_configs
from barnabas.admin.group_offsets import list_group_offsets
from barnabas.admin.groups import list_groups_of
from barnabas.admin.log_dirs import describe_log_dirs_of
from barnabas.admin.offsets import EARLIEST, LATEST, find_offsets
from barnabas.admin.producers import describe_producers
from barnabas.admin.topic_descriptions import (
    PartitionDescription,
    TopicDescription,
    describe_topics,
)
from barnabas.client.cluster_client import ClusterClient
from barnabas.console.context import Context
from barnabas.console.listing import Column, Listing, Row, page_of, respond
from barnabas.console.live import lively
from barnabas.console.pages.overview import sees_broker
from barnabas.console.rendering import counted
from barnabas.console.segments import segment
from barnabas.console.subject_links import why
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition, uuid_text

ASK_MS = 3_000
PARTITION_ROWS = 500
PRODUCERS_PARTITIONS_MAX = 100

COLUMNS = (
    Column("number", "Partition", "number", sorts=True),
    Column("state", "State", sorts=True, link="why"),
    Column("leader", "Leader", "number", sorts=True),
    Column("replicas", "Replicas"),
    Column("isr", "In sync"),
    Column("start", "First offset", "number"),
    Column("end", "End offset", "number"),
    Column("kept", "Offsets kept", "number", sorts=True),
    Column("bytes", "Bytes at the leader", "size", sorts=True),
)
CONFIG_COLUMNS = (
    Column("name", "Option", sorts=True),
    Column("value", "Value"),
    Column("source", "Source", sorts=True),
    Column("doc", "Meaning"),
)
READERS_LOOKED_AT = 100
"""Groups that are asked whether they read a topic."""
STATES = ("no leader", "under-replicated", "not preferred", "ok")


class Reader(NamedTuple):
    """A group that reads a topic."""

    group: str
    state: str
    partitions: int
    """In which it has committed an offset."""
    lag: int | None
    """In offsets, of the partitions whose ends are known."""


def routes(context: Context) -> list[Route]:
    """Return the routes."""

    async def topic(request: Request) -> Response:
        name = request.path_params["topic"]
        client = context.session(request).client
        found = await described(client, name)
        listing = await partitions_of(client, found, request)
        if request.url.path.endswith((".json", ".csv")):
            return respond(context, request, listing)
        rates = note_rates(context, request, name, listing)
        states = context.window.log_states(name) if sees_broker(context, request) else []
        values: dict[str, Any] = {"listing": listing, "rates": rates, "states": states}
        if request.scope.get("is_live"):
            return context.templates.page(request, "topic_live.html", values)
        options, producers, readers, acls = await asyncio.gather(
            failing(describe_configs(client, resource_of(name), documentation=True)),
            failing(_producers(client, found)),
            failing(readers_of(client, found, listing)),
            failing(acls_of(client, name)),
        )
        values |= {
            "topic": found,
            "topic_id": uuid_text(found.topic_id),
            "options": options if isinstance(options, list) else [],
            "options_failed": options if isinstance(options, BarnabasError) else None,
            "producers": producers if isinstance(producers, list) else [],
            "producers_failed": producers if isinstance(producers, BarnabasError) else None,
            "readers": readers if isinstance(readers, list) else [],
            "acls": acls if isinstance(acls, list) else None,
            "clients": context.window.topic_clients(name) if sees_broker(context, request) else [],
            "base": f"/topics/{segment(name)}",
            "quoted": shlex.quote(name),
        }
        return context.templates.page(request, "topic.html", values)

    async def configs(request: Request) -> Response:
        name = request.path_params["topic"]
        entries = await describe_configs(
            context.session(request).client, resource_of(name), documentation=True
        )
        listing = Listing(
            f"Options of {name}",
            f"/topics/{segment(name)}/configs",
            CONFIG_COLUMNS,
            [_config_row(each) for each in entries],
            command=f"barnabas configs describe --topic {shlex.quote(name)} --all",
        )
        page_of(listing.rows, listing, request, page_rows=1000)
        return respond(context, request, listing)

    one = "/topics/{topic:segment}"
    return [
        Route(one, lively(context, topic), methods=["GET"]),
        Route(f"{one}/partitions.json", topic, methods=["GET"]),
        Route(f"{one}/partitions.csv", topic, methods=["GET"]),
        *(
            Route(f"{one}/configs{suffix}", configs, methods=["GET"])
            for suffix in ("", ".json", ".csv")
        ),
    ]


def resource_of(name: str) -> Resource:
    """Return a topic as the owner of options."""
    return Resource(ConfigResourceType.TOPIC, name)


async def failing(work: Any) -> Any:
    """Return the result of some work, or its failure."""
    try:
        return await work
    except BarnabasError as failure:
        return failure


async def described(client: ClusterClient, name: str) -> TopicDescription:
    """Describe a topic; raise its error."""
    [found] = await describe_topics(client, [name])
    if found.error is not None:
        raise found.error
    return found


def state_of(partition: PartitionDescription) -> str:
    """Return the state of a partition in two words."""
    if partition.leader_id < 0:
        return "no leader"
    if len(partition.in_sync) < len(partition.replicas):
        return "under-replicated"
    if partition.replicas and partition.leader_id != partition.replicas[0]:
        return "not preferred"
    return "ok"


async def offsets_of(
    client: ClusterClient, partitions: list[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return first and end offsets, of those partitions whose leaders have answered."""
    found = await asyncio.gather(
        failing(find_offsets(client, dict.fromkeys(partitions, EARLIEST), timeout_ms=ASK_MS)),
        failing(find_offsets(client, dict.fromkeys(partitions, LATEST), timeout_ms=ASK_MS)),
    )
    starts, ends = (
        {}
        if isinstance(each, BarnabasError)
        else {
            partition: answer.offset
            for partition, answer in each.items()
            if not isinstance(answer, RequestError)
        }
        for each in found
    )
    return starts, ends


async def partitions_of(
    client: ClusterClient, topic: TopicDescription, request: Request
) -> Listing:
    """Return the list of partitions, with one page of them; the bad ones first by default."""
    name = topic.name or ""
    rows: list[Row] = []
    for each in topic.partitions:
        state = state_of(each)
        rows.append(
            {
                "number": each.index,
                "name": f"{STATES.index(state)} {each.index:09}",
                "state": state,
                "why": why("partition", f"{name}-{each.index}"),
                "leader": each.leader_id if each.leader_id >= 0 else None,
                "replicas": ", ".join(map(str, each.replicas)),
                "isr": ", ".join(map(str, each.in_sync)),
                "start": None,
                "end": None,
                "kept": None,
                "bytes": None,
                "level": {"no leader": "bad", "under-replicated": "warn"}.get(state, ""),
            }
        )
    listing = Listing(
        f"Partitions of {name}",
        f"/topics/{segment(name)}/partitions",
        COLUMNS,
        rows,
        page=f"/topics/{segment(name)}",
        caption=f"{counted(len(rows), 'partition')}, those with a problem first",
        command=f"barnabas topics describe {shlex.quote(name)}",
    )
    page_of(rows, listing, request, page_rows=PARTITION_ROWS)
    shown = {TopicPartition(name, row["number"]): row for row in listing.rows}
    (starts, ends), directories = await asyncio.gather(
        # What has no leader would be waited for.
        offsets_of(client, [each for each, row in shown.items() if row["leader"] is not None]),
        failing(describe_log_dirs_of(client, None, list(shown), timeout_ms=ASK_MS)),
    )
    for partition, row in shown.items():
        start, end = starts.get(partition), ends.get(partition)
        row["start"], row["end"] = start, end
        if start is not None and end is not None:
            row["kept"] = end - start
    if isinstance(directories, BarnabasError):
        listing.missing.append(f"Sizes are not known: {directories}")
    else:
        for broker_id, found in directories.items():
            if isinstance(found, RequestError):
                listing.missing.append(f"Broker {broker_id} did not say sizes: {found}")
                continue
            for directory in found:
                for replica in directory.replicas:
                    size = shown.get(replica.partition)
                    if size is not None and size["leader"] == broker_id and not replica.is_future:
                        size["bytes"] = replica.size_bytes
    if len(starts) < len(shown):
        listing.missing.append(
            f"The leaders of {len(shown) - len(starts):,} partitions did not say their offsets."
        )
    return listing


async def _producers(client: ClusterClient, topic: TopicDescription) -> list[Any]:
    """Return the producers of a topic that is not too large: (partition, producer) pairs."""
    if len(topic.partitions) > PRODUCERS_PARTITIONS_MAX:
        return []
    wanted = [
        TopicPartition(topic.name or "", each.index)
        for each in topic.partitions
        if each.leader_id >= 0
    ]
    found = await describe_producers(client, wanted, timeout_ms=ASK_MS)
    return [
        (partition.partition, producer)
        for partition, producers in sorted(found.items())
        for producer in producers
    ]


async def acls_of(client: ClusterClient, name: str) -> list[ACL]:
    """Return the rules that concern a topic: those of its name, of a prefix, and of all topics."""
    matching = ResourcePatternFilter(ResourceType.TOPIC, name, ACLResourcePatternType.MATCH)
    anything = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, matching)
    return await describe_acls(client, anything, timeout_ms=ASK_MS)


async def readers_of(
    client: ClusterClient, topic: TopicDescription, listing: Listing
) -> list[Reader]:
    """Return the groups that have committed offsets of a topic, of the first hundred groups."""
    name = topic.name or ""
    ends = {row["number"]: row["end"] for row in listing.rows}
    wanted = [TopicPartition(name, each.index) for each in topic.partitions[:PARTITION_ROWS]]
    listed = [
        each
        for found in (await list_groups_of(client, timeout_ms=ASK_MS)).values()
        if not isinstance(found, RequestError)
        for each in found
    ][:READERS_LOOKED_AT]

    async def look(group: str, state: str) -> Reader | None:
        found = await failing(list_group_offsets(client, {group: wanted}, timeout_ms=ASK_MS))
        if isinstance(found, BarnabasError) or isinstance(found[group], RequestError):
            return None
        committed = {
            partition.partition: each.offset
            for partition, each in found[group].items()
            if not isinstance(each, RequestError) and each.offset >= 0
        }
        if not committed:
            return None
        lags = [
            max(end - offset, 0)
            for number, offset in committed.items()
            if (end := ends.get(number)) is not None
        ]
        return Reader(group, state, len(committed), sum(lags) if lags else None)

    looked = await asyncio.gather(*(look(each.name, each.state) for each in listed))
    return [each for each in looked if each is not None]


def note_rates(
    context: Context, request: Request, name: str, listing: Listing
) -> dict[str, float | None]:
    """Return what a topic gets and gives in a second, from what was seen of it."""
    counts = context.window.topic_counts(name)
    principal = context.session(request).visitor.principal
    ends = [row["end"] for row in listing.rows]
    now_s = asyncio.get_running_loop().time()
    rates = context.rates
    rates.note(("bytes", name), now_s, counts.bytes_in, counts.bytes_out, counts.messages_in)
    of_bytes = rates.per_second(("bytes", name)) or (None, None, None)
    appended = None
    if None not in ends:
        key = "ends", principal, name, listing.after
        rates.note(key, now_s, len(ends), sum(ends))
        appended = (rates.per_second(key) or (None, None))[1]
    return {
        "bytes_in": of_bytes[0],
        "bytes_out": of_bytes[1],
        "messages_in": of_bytes[2],
        "appended": appended,
    }


def _config_row(entry: ConfigEntry) -> Row:
    return {
        "name": entry.name,
        "value": "[hidden]" if entry.sensitive else entry.value,
        "source": entry.source.name.lower(),
        "doc": entry.documentation or "",
    }
