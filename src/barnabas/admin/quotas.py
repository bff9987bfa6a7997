"""Client quotas: how much a user, a client id or an address may produce, fetch and request.

ada = {"user": "ada"}
everyone = {"user": None}          # None stands for the default of its type
await alter_client_quotas(client, [QuotaAlteration(ada, {"producer_byte_rate": 1e6})])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.admin.brokers import ask_brokers
from barnabas.admin.controller import at_controller
from barnabas.admin.failures import check, failure_or_none
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import RequestError
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
"""The types of entities."""

USAGE = "barnabas.usage"
"""The type of a filter that asks a broker for what it measures."""

Entity = Mapping[str, str | None]
"""The entity of a quota: names by type, None for the default of a type."""


class QuotaMatch(IntEnum):
    """How a component of a filter matches."""

    EXACT = 0
    DEFAULT = 1
    ANY = 2


@dataclass(frozen=True, slots=True)
class QuotaFilter:
    """One component of a filter: a type of entities, and which of them."""

    entity_type: str
    match: QuotaMatch = QuotaMatch.ANY
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ClientQuota:
    """The quotas of one entity."""

    entity: Entity
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QuotaAlteration:
    """New quotas of one entity; None removes one."""

    entity: Entity
    values: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class QuotaOutcome:
    """The result of the alteration of one entity."""

    entity: Entity
    error: RequestError | None


@dataclass(frozen=True, slots=True)
class QuotaUsage:
    """What one broker measures of clients that share a quota."""

    entity: Entity
    key: str
    """The quota, such as `producer_byte_rate`."""
    rate: float
    limit: float | None
    throttle_time_ms: float
    """The average time for which the clients were throttled lately."""


async def describe_client_quotas(
    client: ClusterClient,
    filters: Iterable[QuotaFilter] = (),
    *,
    strict: bool = False,
    timeout_ms: float | None = None,
) -> list[ClientQuota]:
    """Return the quotas of all entities that match every component of a filter.

    With `strict`, entities that also have components of other types are left out.

        await describe_client_quotas(client, [QuotaFilter("user", QuotaMatch.EXACT, "ada")])
    """
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=each.entity_type, match_type=each.match, match=each.name)
            for each in filters
        ],
        strict=strict,
    )

    async def attempt() -> DescribeClientQuotasResponse:
        response: DescribeClientQuotasResponse = await client.send(request)
        check(response.error_code, "quotas", response.error_message)
        return response

    response = await client.retrying(attempt, timeout_ms=timeout_ms)
    return [
        ClientQuota(
            {part.entity_type: part.entity_name for part in entry.entity},
            {value.key: value.value for value in entry.values},
        )
        for entry in response.entries or ()
    ]


async def alter_client_quotas(
    client: ClusterClient,
    alterations: Iterable[QuotaAlteration],
    *,
    validate_only: bool = False,
    timeout_ms: float | None = None,
) -> list[QuotaOutcome]:
    """Set and remove quotas; each entity succeeds or fails on its own."""
    request = AlterClientQuotasRequest(
        entries=[
            EntryData(
                entity=[
                    EntityData(entity_type=kind, entity_name=name)
                    for kind, name in each.entity.items()
                ],
                ops=[
                    OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in each.values.items()
                ],
            )
            for each in alterations
        ],
        validate_only=validate_only,
    )

    async def ask(connection: Connection) -> AlterClientQuotasResponse:
        response: AlterClientQuotasResponse = await connection.send(request)
        return response

    response = await at_controller(client, ask, timeout_ms=timeout_ms)
    return [
        QuotaOutcome(
            (entity := {part.entity_type: part.entity_name for part in entry.entity}),
            failure_or_none(entry.error_code, entity, entry.error_message),
        )
        for entry in response.entries
    ]


async def describe_quota_usage(
    client: ClusterClient,
    broker_ids: Iterable[int] | None = None,
    *,
    timeout_ms: float | None = None,
) -> dict[int, list[QuotaUsage] | RequestError]:
    """Return what brokers measure of the clients that quotas concern; None is all live brokers.

    Apache Kafka has this in its metrics alone, and responds with UNSUPPORTED_VERSION.
    """
    everything = ComponentData(entity_type=USAGE, match_type=QuotaMatch.ANY, match=None)
    request = DescribeClientQuotasRequest(components=[everything])

    async def ask(_: int, connection: Connection) -> list[QuotaUsage]:
        response: DescribeClientQuotasResponse = await connection.send(request)
        check(response.error_code, "quota usage", response.error_message)
        usages = []
        for entry in response.entries or ():
            values = {value.key: value.value for value in entry.values}
            (key,) = (each for each in values if "." not in each)
            usages.append(
                QuotaUsage(
                    {part.entity_type: part.entity_name for part in entry.entity},
                    key,
                    values[key],
                    values.get(f"{key}.limit"),
                    values[f"{key}.throttle_time_ms"],
                )
            )
        return usages

    return await ask_brokers(client, broker_ids, ask, timeout_ms=timeout_ms)
