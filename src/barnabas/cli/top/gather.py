"""Takes samples of a cluster through the admin protocol, and of metrics where they are served.

Nothing fails because a part cannot be read: what is missing is named in the sample, with the
reason. Only a cluster without any broker that answers is a failure.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping
from typing import TypeVar

from barnabas.admin.brokers import ask_brokers
from barnabas.admin.cluster import describe_cluster, describe_quorum
from barnabas.admin.group_offsets import list_group_offsets
from barnabas.admin.lag import timestamps_at
from barnabas.admin.log_dirs import describe_log_dirs_of
from barnabas.admin.offsets import EARLIEST, LATEST, find_offsets
from barnabas.admin.topics import describe_topics
from barnabas.cli.health import is_under_replicated, min_isr_of
from barnabas.cli.top.endpoints import Endpoint, fetch_page, known_endpoints
from barnabas.cli.top.page import Page
from barnabas.cli.top.sample import GroupSample, Sample, Waiting
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.client.metadata import TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

Result = TypeVar("Result")

PATIENCE_MS = 5_000
"""How long a sample waits for a part that does not answer."""
TIMED_GROUPS = 20
"""Of so many groups, those with the most lag, the lag in seconds is read."""
TIMED_PARTITIONS = 8
"""In so many partitions of each: a batch is fetched for each of them."""

Ends = dict[TopicPartition, int]


class Gatherer:
    """Takes one sample after another of one cluster."""

    def __init__(self, client: ClusterClient, endpoints: Iterable[Endpoint]) -> None:
        self._client = client
        self._given = list(endpoints)
        self._endpoints: list[Endpoint] | None = None
        self._missing: dict[str, str] = {}

    async def sample(self) -> Sample:
        """Look at everything once."""
        self._missing = {}
        client = self._client
        described = await describe_cluster(client)
        topics = [topic for topic in await describe_topics(client, None) if not topic.error]
        brokers = [broker.node_id for broker in described.brokers]
        if self._endpoints is None:
            self._endpoints = self._given or await known_endpoints(client, described.brokers)
        offsets, controller, sizes, min_isr, pages = await asyncio.gather(
            self._offsets(topics, brokers),
            self._controller(described.controller_id),
            self._sizes(topics, brokers),
            self._min_isr(topics),
            self._pages(),
        )
        at_s, ends, round_trips_ms, groups = offsets
        return Sample(
            at_s=at_s,
            cluster_id=described.cluster_id,
            controller_id=controller,
            brokers=described.brokers,
            topics=tuple(topics),
            min_isr=min_isr,
            ends=ends,
            sizes=sizes,
            groups=groups,
            round_trips_ms=round_trips_ms,
            pages=pages,
            missing=tuple(f"{what}: {why}" for what, why in self._missing.items()),
        )

    async def _part(self, what: str, work: Awaitable[Result], instead: Result) -> Result:
        try:
            return await work
        except BarnabasError as failure:
            self._lacks(what, failure)
            return instead

    def _lacks(self, what: str, failure: BaseException) -> None:
        code = getattr(failure, "code", None)
        reason = " ".join(str(failure).split()) or type(failure).__name__
        self._missing.setdefault(what, f"{reason} ({code.name})" if code is not None else reason)

    async def _controller(self, described: int | None) -> int | None:
        """Return the active controller; brokers of KRaft name any broker instead of it."""
        key = DescribeQuorumRequest.KEY
        assert key is not None
        connection = await self._client.connection()
        if not connection.versions.supports(key):
            return described
        work = describe_quorum(self._client, timeout_ms=PATIENCE_MS)
        quorum = await self._part("the controller", work, None)
        return None if quorum is None or quorum.leader_id < 0 else quorum.leader_id

    async def _min_isr(self, topics: Iterable[TopicView]) -> dict[str, int]:
        short = [
            topic
            for topic in topics
            if any(is_under_replicated(view) for view in topic.partitions.values())
        ]
        if not short:
            return {}
        return await self._part("min.insync.replicas", min_isr_of(self._client, short), {})

    async def _sizes(self, topics: Iterable[TopicView], brokers: list[int]) -> Ends:
        leaders = {
            TopicPartition(topic.name, view.index): view.leader_id
            for topic in topics
            for view in topic.partitions.values()
        }
        work = describe_log_dirs_of(self._client, brokers, timeout_ms=PATIENCE_MS)
        sizes: Ends = {}
        for broker, found in (await self._part("sizes of logs", work, {})).items():
            if isinstance(found, RequestError):
                self._lacks("sizes of logs", found)
                continue
            for replica in (each for directory in found for each in directory.replicas):
                if leaders.get(replica.partition) == broker and not replica.is_future:
                    sizes[replica.partition] = replica.size_bytes
        return sizes

    # offsets and groups

    async def _offsets(
        self, topics: Iterable[TopicView], brokers: list[int]
    ) -> tuple[float, Ends, dict[int, float], dict[str, GroupSample]]:
        live = set(brokers)
        led = [
            TopicPartition(topic.name, view.index)
            for topic in topics
            for view in topic.partitions.values()
            if view.leader_id in live
        ]
        # Positions first: an end that is read earlier than a position would hide lag.
        round_trips_ms, states = await self._listed(brokers)
        positions = await self._positions(states)
        began_s = time.monotonic()
        ends = await self._ends(led, LATEST)
        at_s = (began_s + time.monotonic()) / 2
        groups = await self._groups(states, positions, ends)
        return at_s, ends, round_trips_ms, groups

    async def _ends(self, partitions: Iterable[TopicPartition], position: int) -> Ends:
        wanted = dict.fromkeys(partitions, position)
        work = find_offsets(self._client, wanted, timeout_ms=PATIENCE_MS)
        ends: Ends = {}
        for partition, found in (await self._part("offsets", work, {})).items():
            if isinstance(found, RequestError):
                self._lacks("offsets", found)
            else:
                ends[partition] = found.offset
        return ends

    async def _listed(self, brokers: list[int]) -> tuple[dict[int, float], dict[str, str]]:
        """List the groups, and measure how long each broker takes for that."""

        async def ask(_: int, connection: Connection) -> tuple[float, dict[str, str]]:
            began_s = time.monotonic()
            response: ListGroupsResponse = await connection.send(ListGroupsRequest())
            took_ms = (time.monotonic() - began_s) * 1000
            code = ErrorCode.of(response.error_code)
            if code:
                self._missing.setdefault("groups", f"{code.meaning} ({code.name})")
            return took_ms, {group.group_id: group.group_state for group in response.groups}

        work = ask_brokers(self._client, brokers, ask, timeout_ms=PATIENCE_MS)
        round_trips_ms: dict[int, float] = {}
        states: dict[str, str] = {}
        for broker, answer in (await self._part("groups", work, {})).items():
            if isinstance(answer, RequestError):
                self._lacks(f"broker {broker}", answer)
            else:
                round_trips_ms[broker] = answer[0]
                states |= answer[1]
        return round_trips_ms, states

    async def _positions(self, states: Mapping[str, str]) -> dict[str, Ends]:
        work = list_group_offsets(
            self._client, dict.fromkeys(sorted(states)), timeout_ms=PATIENCE_MS
        )
        positions: dict[str, Ends] = {}
        for name, found in (await self._part("positions of groups", work, {})).items():
            if isinstance(found, RequestError):
                self._lacks("positions of groups", found)
                continue
            positions[name] = {
                partition: each.offset
                for partition, each in found.items()
                if not isinstance(each, RequestError) and each.offset >= 0
            }
        return positions

    async def _groups(
        self, states: Mapping[str, str], positions: Mapping[str, Ends], ends: Ends
    ) -> dict[str, GroupSample]:
        behind = {
            name: {key: ends[key] - at for key, at in own.items() if ends.get(key, 0) > at}
            for name, own in positions.items()
        }
        lagging = {key for own in behind.values() for key in own}
        starts = await self._ends(lagging, EARLIEST) if lagging else {}
        most = sorted(behind, key=lambda name: -sum(behind[name].values()))[:TIMED_GROUPS]
        now_ms = int(time.time() * 1000)
        waiting = dict(
            zip(
                most,
                await asyncio.gather(
                    *(self._waiting(behind[name], positions[name], starts, now_ms) for name in most)
                ),
                strict=True,
            )
        )
        return {
            name: GroupSample(
                states[name],
                own,
                {key: starts[key] for key in own if key in starts},
                waiting.get(name),
            )
            for name, own in positions.items()
        }

    async def _waiting(
        self, behind: Mapping[TopicPartition, int], positions: Ends, starts: Ends, now_ms: int
    ) -> Waiting | None:
        chosen = sorted(behind, key=lambda key: -behind[key])[:TIMED_PARTITIONS]
        if not chosen:
            return None
        first = {key: max(positions[key], starts.get(key, 0)) for key in chosen}
        times = await self._part("lag in seconds", timestamps_at(self._client, first), {})
        if not times:
            return None
        return Waiting(max(now_ms - min(times.values()), 0), len(behind) > len(chosen))

    # metrics

    async def _pages(self) -> dict[int, Page]:
        endpoints = self._endpoints or []
        pages = await asyncio.gather(*(self._page(endpoint) for endpoint in endpoints))
        return {
            endpoint.key: page
            for endpoint, page in zip(endpoints, pages, strict=True)
            if page is not None
        }

    async def _page(self, endpoint: Endpoint) -> Page | None:
        try:
            return await asyncio.to_thread(fetch_page, endpoint.url, PATIENCE_MS / 1000)
        except (OSError, ValueError) as failure:
            self._lacks(f"metrics at {endpoint.url}", failure)
            return None
