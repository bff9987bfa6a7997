"""Groups and transactions are administered through their coordinators, wherever these are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from barnabas.admin import groups
from barnabas.admin.coordinators import Kind, at_coordinator, find_coordinator
from barnabas.admin.group_offsets import commit_offsets, group_offsets
from barnabas.admin.groups import delete_groups, describe_group, list_groups
from barnabas.admin.lag import lag_of, timestamps_at
from barnabas.admin.topics import NewTopic, create_topics
from barnabas.admin.transactions import describe_transaction, list_transactions, open_transactions
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import UnsupportedVersionError

Result = TypeVar("Result")


def on(bootstrap: str, work: Callable[[ClusterClient], Awaitable[Result]]) -> Result:
    async def session() -> Result:
        async with ClusterClient(bootstrap) as client:
            await client.refresh()
            return await work(client)

    return asyncio.run(session())


def test_the_life_of_a_groups_offsets(barnabas_bootstrap: str) -> None:
    first, second = TopicPartition("admin-groups", 0), TopicPartition("admin-groups", 1)

    async def work(client: ClusterClient) -> None:
        await create_topics(client, [NewTopic("admin-groups", 2, 1)])
        missing = TopicPartition("nowhere", 0)
        outcomes = await commit_offsets(client, "admin-g", {second: 0, first: 0, missing: 1})
        assert (outcomes[first], outcomes[second]) == (None, None)
        refused = outcomes[missing]
        assert refused is not None
        assert refused.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        offsets = await group_offsets(client, "admin-g")
        assert [(key, each.offset) for key, each in offsets.items()] == [(first, 0), (second, 0)]
        lags = await lag_of(client, offsets, 0)
        assert [(lag.records, lag.waiting_ms) for lag in lags.values()] == [(0, None)] * 2
        assert await timestamps_at(client, {first: 0}) == {}
        listed = {group.name: group for group in await list_groups(client)}
        assert listed["admin-g"].state == "Empty"
        assert (await describe_group(client, "admin-g")).members == ()
        deleted = await delete_groups(client, ["admin-g", "never-was"])
        assert deleted["admin-g"] is None
        failure = deleted["never-was"]
        assert isinstance(failure, RequestError)
        assert failure.code is ErrorCode.GROUP_ID_NOT_FOUND
        with pytest.raises(RequestError, match="group 'admin-g' does not exist"):
            await describe_group(client, "admin-g")

    on(barnabas_bootstrap, work)


def test_a_broker_without_the_newer_groups(
    barnabas_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unsupported(
        connection: Connection, node_id: int, names: list[str], operations: bool
    ) -> dict[str, UnsupportedVersionError]:
        return {name: UnsupportedVersionError(name) for name in names}

    monkeypatch.setattr(groups, "_describe_newer", unsupported)

    async def work(client: ClusterClient) -> None:
        with pytest.raises(RequestError, match="group 'none-such' does not exist"):
            await describe_group(client, "none-such")

    on(barnabas_bootstrap, work)


def test_a_passing_refusal_is_asked_again(barnabas_bootstrap: str) -> None:
    async def work(client: ClusterClient) -> None:
        answers = iter([ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, None])

        async def ask(connection: Connection) -> str:
            code = next(answers)
            if code is not None:
                raise RequestError(code)
            return "done"

        assert await at_coordinator(client, "g", Kind.GROUP, ask) == "done"
        assert await find_coordinator(client, "g", Kind.GROUP) in client.cluster.brokers

    on(barnabas_bootstrap, work)


def test_transactions(barnabas_bootstrap: str) -> None:
    async def work(client: ClusterClient) -> None:
        assert await list_transactions(client, ["Ongoing"]) == []
        with pytest.raises(RequestError, match="does not know the transaction state Asleep"):
            await list_transactions(client, ["Asleep"])
        with pytest.raises(RequestError) as missing:
            await describe_transaction(client, "never-was")
        assert missing.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        await create_topics(client, [NewTopic("admin-transactions", 1, 1)])
        assert await open_transactions(client, [TopicPartition("admin-transactions", 0)]) == []

    on(barnabas_bootstrap, work)
