"""DescribeClientQuotas: the quotas of the entities that match a filter.

A filter with the one component `barnabas.usage` asks for what this broker measures instead: for
each quota its rate, and `.limit`, `.throttle_time_ms` and `.tokens` beside it.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from barnabas.broker.cluster.tree_errors import refused_as
from barnabas.broker.handlers.quota_entities import (
    CLIENT_ID,
    IP,
    USER,
    Entity,
    keys_of,
    read_entities,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.quotas.quota_keys import parse_limit
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

EXACT, DEFAULT, ANY = 0, 1, 2
"""How a component matches."""
USAGE = "barnabas.usage"


async def handle(
    broker: Broker, request: Request[DescribeClientQuotasRequest]
) -> DescribeClientQuotasResponse:
    """Return the entities that match every component."""
    if not broker.allows(
        request.session, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME
    ):
        raise RequestError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    body = request.body
    if [component.entity_type for component in body.components] == [USAGE]:
        return DescribeClientQuotasResponse(error_message=None, entries=_usage(broker))
    components = _components(body.components)
    with refused_as():
        entities = await read_entities(broker.parts.config_store)
    entries = []
    for entity, configs in entities:
        values = {
            key: limit
            for key in keys_of(entity)
            if (limit := parse_limit(key, configs.get(key))) is not None
        }
        if values and _matches(entity, components, strict=body.strict):
            entries.append(_entry(entity, values))
    return DescribeClientQuotasResponse(error_message=None, entries=entries)


def refuse(
    request: DescribeClientQuotasRequest, code: ErrorCode, message: str | None
) -> DescribeClientQuotasResponse:
    """Answer with an error."""
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)


def _components(given: list[ComponentData]) -> dict[str, ComponentData]:
    components: dict[str, ComponentData] = {}
    for component in given:
        kind = component.entity_type
        if kind in components:
            raise RequestError(ErrorCode.INVALID_REQUEST, f"entity type {kind} is named twice")
        if kind not in (USER, CLIENT_ID, IP):
            raise RequestError(
                ErrorCode.UNSUPPORTED_VERSION if kind else ErrorCode.INVALID_REQUEST,
                f"entity type {kind!r}: must be user, client-id or ip",
            )
        if component.match_type not in (EXACT, DEFAULT, ANY):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"match type {component.match_type}: must be 0 (exact), 1 (default) or 2 (any)",
            )
        if component.match_type == EXACT and component.match is None:
            raise RequestError(ErrorCode.INVALID_REQUEST, f"{kind}: an exact match needs a name")
        components[kind] = component
    if IP in components and len(components) > 1:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "the quota of an ip belongs to no user or client-id"
        )
    return components


def _matches(entity: Entity, components: dict[str, ComponentData], *, strict: bool) -> bool:
    if strict and set(entity) != set(components):
        return False
    for kind, component in components.items():
        if kind not in entity:
            return False
        name = entity[kind]
        if component.match_type == EXACT and name != component.match:
            return False
        if component.match_type == DEFAULT and name is not None:
            return False
    return True


def _entry(entity: Entity, values: dict[str, float]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        values=[ValueData(key=key, value=value) for key, value in values.items()],
    )


def _usage(broker: Broker) -> list[EntryData]:
    entries = []
    for key, usage in broker.quotas.usage():
        sharing = {USER: usage.sharing.user, CLIENT_ID: usage.sharing.client_id}
        values = {
            key: usage.rate,
            f"{key}.limit": usage.limit,
            f"{key}.throttle_time_ms": usage.throttle_ms,
            f"{key}.tokens": usage.tokens,
        }
        entries.append(
            _entry(
                {kind: name for kind, name in sharing.items() if name is not None},
                {each: v for each, v in values.items() if v is not None and isfinite(v)},
            )
        )
    return entries
