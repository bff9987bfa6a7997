"""Options of resources, as `KafkaAdminClient` describes, changes and resets them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.admin import configs as calls
from barnabas.admin.config_entries import (
    AlterConfigOp,
    Change,
    ConfigEntry,
    ConfigResourceType,
    Resource,
)
from barnabas.admin.config_sources import ConfigFilterType, ConfigResource, ConfigSourceType
from barnabas.admin.numbered import chosen
from barnabas.admin.settling import settled_or_raise
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

OK = "OK"
ByResource = dict[str, dict[str, Any]]


async def describe_configs(
    client: ClusterClient,
    config_resources: Iterable[ConfigResource],
    include_synonyms: bool = False,
    config_filter: ConfigFilterType | str = "modified",
) -> ByResource:
    """Return options as `{type: {name: {option: {value, config_source, …}}}}`.

    `config_filter` is modified (those that were set), dynamic (those that can be), default, static
    or all. Raises if a resource cannot be described.

        admin.describe_configs([ConfigResource("topic", "orders")], config_filter="all")
    """
    wanted = chosen(ConfigFilterType, config_filter)
    resources = {
        each.resource: None if each.configs is None else list(each.configs)
        for each in config_resources
    }
    described = await calls.describe_resources(client, resources, synonyms=include_synonyms)
    answer: ByResource = {}
    for resource, entries in settled_or_raise(described).items():
        answer.setdefault(resource.type.name.lower(), {})[resource.name] = {
            entry.name: _shown(entry) for entry in entries if _is_wanted(entry, wanted)
        }
    return answer


def _is_wanted(entry: ConfigEntry, wanted: ConfigFilterType) -> bool:
    source = ConfigSourceType(entry.source)
    if wanted is ConfigFilterType.DYNAMIC:
        return not entry.read_only
    if wanted is ConfigFilterType.STATIC:
        return source is ConfigSourceType.STATIC_BROKER_CONFIG
    if wanted is ConfigFilterType.ALL:
        return True
    return source.is_modified() is (wanted is ConfigFilterType.MODIFIED)


def _shown(entry: ConfigEntry) -> dict[str, Any]:
    return {
        "value": entry.value,
        "read_only": entry.read_only,
        "config_source": ConfigSourceType(entry.source).name,
        "is_sensitive": entry.sensitive,
        "synonyms": [
            {"name": name, "value": value, "source": ConfigSourceType(source).name}
            for name, value, source in entry.synonyms
        ],
        "config_type": entry.type.name,
        "documentation": entry.documentation,
    }


async def alter_configs(
    client: ClusterClient,
    config_resources: Iterable[ConfigResource],
    validate_only: bool = False,
    raise_on_unknown: bool = True,
    incremental: bool | None = None,
) -> ByResource:
    """Change options; return `{type: {name: 'OK' or the error}}`.

    An option's new value is a value, or an (operation, value) pair. Options that are not named stay
    as they are, also at brokers before 2.3, where this takes two steps. `raise_on_unknown` checks
    first that all named options can be changed.

        admin.alter_configs([ConfigResource("topic", "orders", {"retention.ms": 60000})])
    """
    changes = {each.resource: _changes(each) for each in config_resources}
    if raise_on_unknown:
        await _reject_unknown(client, changes)
    if await _is_incremental(client, incremental):
        outcomes = await calls.alter_resources(client, changes, validate_only=validate_only)
    else:
        options: dict[Resource, dict[str, str]] = {}
        for resource, wanted in changes.items():
            odd = [change for change in wanted if change.operation is not AlterConfigOp.SET]
            if odd:
                raise InvalidValueError(
                    f"{odd[0].name}: {odd[0].operation.name} needs incremental changes; "
                    "without them only SET is possible"
                )
            options[resource] = calls.changed(await _own(client, resource), wanted)
        outcomes = await calls.replace_resources(client, options, validate_only=validate_only)
    return _by_resource(outcomes)


async def incremental_alter_configs(
    client: ClusterClient, config_resources: Iterable[ConfigResource], validate_only: bool = False
) -> ByResource:
    """Change options one by one (brokers from 2.3 on); the same as `alter_configs` there.

    admin.incremental_alter_configs([
        ConfigResource("topic", "orders", {"cleanup.policy": (AlterConfigOp.APPEND, "compact")})])
    """
    return await alter_configs(
        client, config_resources, validate_only, raise_on_unknown=False, incremental=True
    )


async def reset_configs(
    client: ClusterClient,
    config_resources: Iterable[ConfigResource],
    validate_only: bool = False,
    raise_on_unknown: bool = True,
    incremental: bool | None = None,
) -> ByResource:
    """Reset options to their defaults: those named, or all that were set.

    admin.reset_configs([ConfigResource("topic", "orders", ["retention.ms"])])
    """
    named = {each.resource: list(each.configs or ()) for each in config_resources}
    changes = {
        resource: [
            Change(AlterConfigOp.DELETE, name) for name in names or await _own(client, resource)
        ]
        for resource, names in named.items()
    }
    if raise_on_unknown:
        await _reject_unknown(client, changes)
    if await _is_incremental(client, incremental):
        outcomes = await calls.alter_resources(client, changes, validate_only=validate_only)
    else:
        options = {
            resource: calls.changed(await _own(client, resource), wanted)
            for resource, wanted in changes.items()
        }
        outcomes = await calls.replace_resources(client, options, validate_only=validate_only)
    return _by_resource(outcomes)


async def list_config_resources(
    client: ClusterClient, resource_types: Iterable[ConfigResourceType | str] | None = None
) -> dict[str, list[str]]:
    """Return the resources that have options of their own, as `{type: [name, …]}`.

    admin.list_config_resources(["client_metrics"])
    """
    types = [chosen(ConfigResourceType, each) for each in resource_types or ()]
    answer: dict[str, list[str]] = {}
    for resource in await calls.list_config_resources(client, types):
        answer.setdefault(resource.type.name.lower(), []).append(resource.name)
    return answer


def _changes(given: ConfigResource) -> list[Change]:
    if given.configs is None or not isinstance(given.configs, Mapping):
        raise InvalidValueError(
            f"{given!r}: configs must be a dict of option: value or option: (operation, value)"
        )
    changes = []
    for name, value in given.configs.items():
        operation, new = value if isinstance(value, tuple) else (AlterConfigOp.SET, value)
        operation = chosen(AlterConfigOp, operation)
        deletes = operation is AlterConfigOp.DELETE or new is None
        changes.append(Change(operation, name, None if deletes else _text(new)))
    return changes


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


async def _is_incremental(client: ClusterClient, wanted: bool | None) -> bool:
    if wanted is not None:
        return wanted
    key = IncrementalAlterConfigsRequest.KEY
    assert key is not None
    return (await client.retrying(client.connection)).versions.supports(key)


async def _own(client: ClusterClient, resource: Resource) -> dict[str, str]:
    """Return the options that were set for a resource."""
    own = calls.own_source(resource)
    entries = await calls.describe_configs(client, resource)
    return {entry.name: entry.value or "" for entry in entries if entry.source is own}


async def _reject_unknown(client: ClusterClient, changes: Mapping[Resource, list[Change]]) -> None:
    described = await calls.describe_resources(client, dict.fromkeys(changes))
    for resource, entries in settled_or_raise(described).items():
        known = {entry.name for entry in entries if not entry.read_only}
        unknown = [change.name for change in changes[resource] if change.name not in known]
        if unknown:
            raise InvalidValueError(
                f"{resource} has no option {', '.join(map(repr, unknown))} that can be changed"
            )


def _by_resource(outcomes: Mapping[Resource, RequestError | None]) -> ByResource:
    answer: ByResource = {}
    for resource, error in outcomes.items():
        outcome = OK if error is None else f"[Error {error.errno}] {type(error).__name__}: {error}"
        answer.setdefault(resource.type.name.lower(), {})[resource.name] = outcome
    return answer
