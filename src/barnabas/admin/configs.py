"""Describe and change the options of topics, brokers, loggers, groups and client metrics.

Brokers and their loggers are asked themselves; the rest is asked of any broker. The functions
about several resources return an outcome for each of them; those about one raise its failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from barnabas.admin.config_entries import (
    AlterConfigOp,
    Change,
    ConfigEntry,
    ConfigResourceType,
    ConfigSource,
    ConfigType,
    Resource,
)
from barnabas.admin.failures import check, coded
from barnabas.admin.numbered import member_of
from barnabas.admin.settling import Answer, is_passing, settle
from barnabas.client.cluster_client import ClusterClient, Destination
from barnabas.client.connection import Connection
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.request_errors import request_error
from barnabas.wire.messages import alter_configs as full
from barnabas.wire.messages import incremental_alter_configs as incremental
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from barnabas.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


async def describe_configs(
    client: ClusterClient,
    resource: Resource,
    names: Iterable[str] | None = None,
    *,
    synonyms: bool = False,
    documentation: bool = False,
) -> list[ConfigEntry]:
    """Return the options of a resource (or those named), sorted by name."""
    keys = None if names is None else list(names)
    described = await describe_resources(
        client, {resource: keys}, synonyms=synonyms, documentation=documentation
    )
    outcome = described[resource]
    if isinstance(outcome, RequestError):
        raise outcome
    return sorted(outcome, key=lambda entry: entry.name)


async def describe_resources(
    client: ClusterClient,
    resources: Mapping[Resource, Sequence[str] | None],
    *,
    synonyms: bool = False,
    documentation: bool = False,
    timeout_ms: float | None = None,
) -> dict[Resource, list[ConfigEntry] | RequestError]:
    """Return the options of several resources: all of them (None), or those named.

    orders = Resource(ConfigResourceType.TOPIC, "orders")
    described = await describe_resources(client, {orders: ["retention.ms"]})
    """

    async def ask(
        connection: Connection, group: list[Resource]
    ) -> dict[Resource, list[ConfigEntry] | RequestError]:
        version = connection.version_of(DescribeConfigsRequest)
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configuration_keys=_listed(resources[resource]),
                )
                for resource in group
            ],
            include_synonyms=synonyms and version >= 1,
            include_documentation=documentation and version >= 3,
        )
        response: DescribeConfigsResponse = await connection.send(request, version=version)
        return {
            _resource(result.resource_type, result.resource_name): request_error(
                result.error_code, result.error_message
            )
            if result.error_code
            else [_entry(entry) for entry in result.configs]
            for result in response.results
        }

    return await _ask_owners(client, resources, ask, timeout_ms)


def _listed(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)


def _resource(number: int, name: str) -> Resource:
    return Resource(member_of(ConfigResourceType, number), name)


def _entry(entry: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        entry.name,
        entry.value,
        ConfigSource.of(entry.config_source, is_default=entry.is_default),
        entry.read_only,
        entry.is_sensitive,
        tuple((s.name, s.value, ConfigSource.of(s.source)) for s in entry.synonyms),
        entry.documentation,
        member_of(ConfigType, entry.config_type),
    )


async def alter_configs(
    client: ClusterClient,
    resource: Resource,
    changes: Iterable[Change],
    *,
    validate_only: bool = False,
) -> None:
    """Change options of a resource; raises if the broker rejects any of them.

    Brokers before 2.3 can only replace all options at once: there the current ones are read
    first, so two such changes at the same time may undo each other.
    """
    wanted = list(changes)
    connection = await client.retrying(lambda: client.connection(resource.destination))
    key = incremental.IncrementalAlterConfigsRequest.KEY
    assert key is not None
    if connection.versions.supports(key):
        outcomes = await alter_resources(client, {resource: wanted}, validate_only=validate_only)
    else:
        present = {
            entry.name: entry.value or ""
            for entry in await describe_configs(client, resource)
            if entry.source is own_source(resource)
        }
        outcomes = await replace_resources(
            client, {resource: changed(present, wanted)}, validate_only=validate_only
        )
    failed = outcomes[resource]
    if failed is not None:
        raise failed


async def alter_resources(
    client: ClusterClient,
    changes: Mapping[Resource, Iterable[Change]],
    *,
    validate_only: bool = False,
    timeout_ms: float | None = None,
) -> dict[Resource, RequestError | None]:
    """Change options one by one; the others of a resource stay as they are (2.3 and later).

    await alter_resources(client, {orders: [Change(AlterConfigOp.SET, "retention.ms", "60000")]})
    """
    wanted = {resource: list(each) for resource, each in changes.items()}

    async def ask(
        connection: Connection, group: list[Resource]
    ) -> dict[Resource, RequestError | None]:
        request = incremental.IncrementalAlterConfigsRequest(
            resources=[
                incremental.AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        incremental.AlterableConfig(
                            name=change.name, config_operation=change.operation, value=change.value
                        )
                        for change in wanted[resource]
                    ],
                )
                for resource in group
            ],
            validate_only=validate_only,
        )
        response: incremental.IncrementalAlterConfigsResponse = await connection.send(request)
        return _altered(response.responses)

    return await _ask_owners(client, wanted, ask, timeout_ms)


async def replace_resources(
    client: ClusterClient,
    options: Mapping[Resource, Mapping[str, str | None]],
    *,
    validate_only: bool = False,
    timeout_ms: float | None = None,
) -> dict[Resource, RequestError | None]:
    """Set exactly these options of resources: all others return to their defaults."""

    async def ask(
        connection: Connection, group: list[Resource]
    ) -> dict[Resource, RequestError | None]:
        request = full.AlterConfigsRequest(
            resources=[
                full.AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        full.AlterableConfig(name=name, value=value)
                        for name, value in options[resource].items()
                    ],
                )
                for resource in group
            ],
            validate_only=validate_only,
        )
        response: full.AlterConfigsResponse = await connection.send(request)
        return _altered(response.responses)

    return await _ask_owners(client, options, ask, timeout_ms)


def _altered(
    responses: Iterable[
        incremental.AlterConfigsResourceResponse | full.AlterConfigsResourceResponse
    ],
) -> dict[Resource, RequestError | None]:
    return {
        _resource(result.resource_type, result.resource_name): request_error(
            result.error_code, result.error_message
        )
        if result.error_code
        else None
        for result in responses
    }


async def _ask_owners(
    client: ClusterClient,
    resources: Iterable[Resource],
    ask: Callable[
        [Connection, list[Resource]], Awaitable[Mapping[Resource, Answer | RequestError]]
    ],
    timeout_ms: float | None,
) -> dict[Resource, Answer | RequestError]:
    """Ask the broker responsible for some resources once; see `settle`."""

    async def one(
        to: Destination, group: list[Resource]
    ) -> Mapping[Resource, Answer | RequestError]:
        try:
            return await ask(await client.connection(to), group)
        except BarnabasError as broken:
            return dict.fromkeys(group, coded(broken))

    async def attempt(missing: list[Resource]) -> Mapping[Resource, Answer | RequestError]:
        owners: dict[Destination, list[Resource]] = {}
        for resource in missing:
            owners.setdefault(resource.destination, []).append(resource)
        outcomes: dict[Resource, Answer | RequestError] = {}
        for answers in await asyncio.gather(*(one(*each) for each in owners.items())):
            outcomes |= answers
        return outcomes

    def passing(resource: Resource, failed: RequestError) -> bool:
        # No retry waits for a topic to be created so that it can have options.
        unknown = failed.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return is_passing(resource, failed) and not unknown

    return await settle(client, resources, attempt, passing=passing, timeout_ms=timeout_ms)


def own_source(resource: Resource) -> ConfigSource:
    """Return the source of values that were set for this resource itself."""
    if resource.type is ConfigResourceType.BROKER:
        return ConfigSource.BROKER if resource.name else ConfigSource.CLUSTER
    return ConfigSource[resource.type.name]


def changed(present: Mapping[str, str], changes: Iterable[Change]) -> dict[str, str]:
    """Return options after some changes, as a broker with incremental ones would have them."""
    result = dict(present)
    for change in changes:
        if change.operation is AlterConfigOp.DELETE:
            result.pop(change.name, None)
            continue
        value = change.value or ""
        items = [item for item in result.get(change.name, "").split(",") if item]
        if change.operation is AlterConfigOp.APPEND:
            value = ",".join(dict.fromkeys([*items, *value.split(",")]))
        elif change.operation is AlterConfigOp.SUBTRACT:
            value = ",".join(item for item in items if item not in value.split(","))
        result[change.name] = value
    return result


async def list_config_resources(
    client: ClusterClient,
    types: Iterable[ConfigResourceType] = (),
    *,
    timeout_ms: float | None = None,
) -> list[Resource]:
    """Return the resources that have options of their own; without `types`, those of all types.

    Brokers before 4.1 list client metrics only.
    """
    wanted = [int(each) for each in types]
    metrics_only = wanted == [ConfigResourceType.CLIENT_METRICS]

    async def attempt() -> ListConfigResourcesResponse:
        connection = await client.connection()
        least = 1 if wanted and not metrics_only else 0
        version = connection.version_of(ListConfigResourcesRequest, at_least=least)
        request = ListConfigResourcesRequest(resource_types=wanted if version >= 1 else [])
        response: ListConfigResourcesResponse = await connection.send(request, version=version)
        check(response.error_code, "resources with options")
        return response

    response = await client.retrying(attempt, timeout_ms=timeout_ms)
    return [
        _resource(resource.resource_type, resource.resource_name)
        for resource in response.config_resources
    ]


async def list_client_metrics_resources(
    client: ClusterClient, *, timeout_ms: float | None = None
) -> list[str]:
    """Return the names of the subscriptions to clients' metrics."""
    found = await list_config_resources(
        client, [ConfigResourceType.CLIENT_METRICS], timeout_ms=timeout_ms
    )
    return [resource.name for resource in found]
