"""Show and change the options of topics, brokers and the whole cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

from barnabas.client.switchboard import ANY, Destination, Switchboard
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.wire.messages import alter_configs as full
from barnabas.wire.messages import incremental_alter_configs as incremental
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)


class ResourceType(IntEnum):
    """What an option belongs to."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8


class ConfigSource(IntEnum):
    """Where an option's value comes from."""

    UNKNOWN = 0
    TOPIC = 1
    BROKER = 2
    CLUSTER = 3
    FILE = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Operation(IntEnum):
    """What to do with an option."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class Resource:
    """The owner of options; a broker resource with an empty name is the whole cluster."""

    type: ResourceType
    name: str

    @property
    def destination(self) -> Destination:
        """Return whom to ask: a broker answers for itself only."""
        return int(self.name) if self.type is not ResourceType.TOPIC and self.name else ANY


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One option; `value` is None when it is secret."""

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    synonyms: tuple[tuple[str, str | None, ConfigSource], ...]
    documentation: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """One change to one option; `value` is None for DELETE."""

    operation: Operation
    name: str
    value: str | None = None


async def describe_configs(
    board: Switchboard,
    resource: Resource,
    names: Iterable[str] | None = None,
    *,
    synonyms: bool = False,
    documentation: bool = False,
) -> list[ConfigEntry]:
    """Return the options of a resource (or those named), in the order of their names."""
    keys = None if names is None else list(names)

    async def attempt() -> DescribeConfigsResponse:
        connection = await board.connection(resource.destination)
        version = connection.version_of(DescribeConfigsRequest)
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configuration_keys=keys,
                )
            ],
            include_synonyms=synonyms and version >= 1,
            include_documentation=documentation and version >= 3,
        )
        response: DescribeConfigsResponse = await connection.send(request, version=version)
        for result in response.results:
            _check(result.error_code, result.error_message)
        return response

    response = await board.retrying(attempt)
    entries = [
        ConfigEntry(
            entry.name,
            entry.value,
            _source(entry.config_source, entry.is_default),
            entry.read_only,
            entry.is_sensitive,
            tuple((s.name, s.value, _source(s.source, False)) for s in entry.synonyms),
            entry.documentation,
        )
        for result in response.results
        for entry in result.configs
    ]
    return sorted(entries, key=lambda entry: entry.name)


async def alter_configs(
    board: Switchboard,
    resource: Resource,
    changes: Iterable[Change],
    *,
    validate_only: bool = False,
) -> None:
    """Change options of a resource; raises if the broker refuses any of them.

    Brokers before 2.3 can only replace all options at once: there the present ones are read
    first, so two such changes at the same time may undo each other.
    """
    wanted = list(changes)

    async def attempt() -> None:
        connection = await board.connection(resource.destination)
        key = incremental.IncrementalAlterConfigsRequest.KEY
        assert key is not None
        if connection.versions.supports(key):
            await _alter_incrementally(board, resource, wanted, validate_only)
        else:
            await _replace(board, resource, wanted, validate_only)

    await board.retrying(attempt)


async def _alter_incrementally(
    board: Switchboard, resource: Resource, changes: list[Change], validate_only: bool
) -> None:
    request = incremental.IncrementalAlterConfigsRequest(
        resources=[
            incremental.AlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[
                    incremental.AlterableConfig(
                        name=change.name, config_operation=change.operation, value=change.value
                    )
                    for change in changes
                ],
            )
        ],
        validate_only=validate_only,
    )
    response: incremental.IncrementalAlterConfigsResponse = await board.send(
        request, resource.destination
    )
    for result in response.responses:
        _check(result.error_code, result.error_message)


async def _replace(
    board: Switchboard, resource: Resource, changes: list[Change], validate_only: bool
) -> None:
    own = ConfigSource.TOPIC
    if resource.type is ResourceType.BROKER:
        own = ConfigSource.BROKER if resource.name else ConfigSource.CLUSTER
    present = {
        entry.name: entry.value or ""
        for entry in await describe_configs(board, resource)
        if entry.source is own
    }
    request = full.AlterConfigsRequest(
        resources=[
            full.AlterConfigsResource(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[
                    full.AlterableConfig(name=name, value=value)
                    for name, value in changed(present, changes).items()
                ],
            )
        ],
        validate_only=validate_only,
    )
    response: full.AlterConfigsResponse = await board.send(request, resource.destination)
    for result in response.responses:
        _check(result.error_code, result.error_message)


def changed(present: dict[str, str], changes: Iterable[Change]) -> dict[str, str]:
    """Return options after some changes, as a broker with incremental ones would have them."""
    result = dict(present)
    for change in changes:
        if change.operation is Operation.DELETE:
            result.pop(change.name, None)
            continue
        value = change.value or ""
        items = [item for item in result.get(change.name, "").split(",") if item]
        if change.operation is Operation.APPEND:
            value = ",".join(dict.fromkeys([*items, *value.split(",")]))
        elif change.operation is Operation.SUBTRACT:
            value = ",".join(item for item in items if item not in value.split(","))
        result[change.name] = value
    return result


def _source(number: int, is_default: bool) -> ConfigSource:
    if number == -1:  # version 0 tells only whether a value is the default
        return ConfigSource.DEFAULT if is_default else ConfigSource.UNKNOWN
    known = {int(source) for source in ConfigSource}
    return ConfigSource(number) if number in known else ConfigSource.UNKNOWN


def _check(error_code: int, message: str | None) -> None:
    if error_code:
        raise RequestError(ErrorCode.of(error_code), message)
