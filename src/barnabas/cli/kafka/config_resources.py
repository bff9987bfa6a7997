"""`kafka-configs` for topics, brokers, loggers, client metrics and groups."""

from __future__ import annotations

from barnabas.admin.config_entries import (
    AlterConfigOp,
    Change,
    ConfigEntry,
    ConfigResourceType,
    ConfigSource,
    Resource,
)
from barnabas.admin.configs import alter_configs, describe_configs, own_source
from barnabas.cli.kafka.config_entity import (
    BROKER_LOGGERS,
    BROKERS,
    CLIENT_METRICS,
    GROUPS,
    TOPICS,
    Changes,
    Entity,
    InvalidConfig,
    check_removed,
)
from barnabas.client.cluster_client import ClusterClient

KINDS = {
    TOPICS: ConfigResourceType.TOPIC,
    BROKERS: ConfigResourceType.BROKER,
    BROKER_LOGGERS: ConfigResourceType.BROKER_LOGGER,
    CLIENT_METRICS: ConfigResourceType.CLIENT_METRICS,
    GROUPS: ConfigResourceType.GROUP,
}
SOURCES = {
    ConfigSource.TOPIC: "DYNAMIC_TOPIC_CONFIG",
    ConfigSource.BROKER: "DYNAMIC_BROKER_CONFIG",
    ConfigSource.CLUSTER: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    ConfigSource.FILE: "STATIC_BROKER_CONFIG",
    ConfigSource.DEFAULT: "DEFAULT_CONFIG",
    ConfigSource.BROKER_LOGGER: "DYNAMIC_BROKER_LOGGER_CONFIG",
    ConfigSource.CLIENT_METRICS: "DYNAMIC_CLIENT_METRICS_CONFIG",
    ConfigSource.GROUP: "DYNAMIC_GROUP_CONFIG",
}
"""Kafka's names of the sources."""


async def describe(client: ClusterClient, entities: list[Entity], *, everything: bool) -> None:
    """Print the options of one entity, or of all."""
    [entity] = entities
    names = [entity.name] if entity.name is not None else await _all(client, entity.type)
    for name in names:
        if entity.type == BROKERS and not name:
            print(f"Default configs for {entity.type} in the cluster are:")
        else:
            kind = "All" if everything else "Dynamic"
            print(f"{kind} configs for {entity.type[:-1]} {name} are:")
        for entry in await _entries(client, entity.type, name, everything=everything):
            print(f"  {_text(entry)}")


def _text(entry: ConfigEntry) -> str:
    synonyms = ", ".join(
        f"{SOURCES.get(source, 'UNKNOWN')}:{name}={_value(value)}"
        for name, value, source in entry.synonyms
    )
    sensitive = str(entry.sensitive).lower()
    return f"{entry.name}={_value(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _value(value: str | None) -> str:
    return "null" if value is None else value


async def _all(client: ClusterClient, kind: str) -> list[str]:
    if kind == TOPICS:
        from barnabas.admin.topic_descriptions import list_topics

        return await list_topics(client)
    if kind in (BROKERS, BROKER_LOGGERS):
        return [*(str(broker) for broker in sorted(client.cluster.brokers)), ""]
    if kind == GROUPS:
        from barnabas.admin.groups import list_groups

        return [group.name for group in await list_groups(client)]
    from barnabas.admin.configs import list_client_metrics_resources

    return sorted(await list_client_metrics_resources(client))


async def _entries(
    client: ClusterClient, kind: str, name: str, *, everything: bool
) -> list[ConfigEntry]:
    resource = Resource(KINDS[kind], name)
    found = await describe_configs(client, resource, synonyms=True)
    if everything or kind == BROKER_LOGGERS:
        return found
    return [entry for entry in found if entry.source is own_source(resource)]


async def alter(client: ClusterClient, entities: list[Entity], changes: Changes) -> None:
    """Set and reset options of one entity; what is to be reset must be set."""
    [entity] = entities
    name = entity.name or ""
    resource = Resource(KINDS[entity.type], name)
    present = {
        entry.name: entry for entry in await _entries(client, entity.type, name, everything=False)
    }
    if entity.type == BROKER_LOGGERS:
        unknown = [each for each in (*changes.removed, *changes.added) if each not in present]
        if unknown:
            raise InvalidConfig(f"Invalid broker logger(s): {','.join(unknown)}")
    else:
        check_removed(changes, present)
    if entity.type == BROKERS:
        left = present.keys() - changes.removed - changes.added.keys()
        secret = sorted(each for each in left if present[each].value is None)
        if secret:
            raise InvalidConfig(
                "All sensitive broker config entries must be specified for --alter, missing "
                f"entries: Set({', '.join(secret)})"
            )
    await alter_configs(
        client,
        resource,
        [
            *(Change(AlterConfigOp.SET, key, value) for key, value in changes.added.items()),
            *(Change(AlterConfigOp.DELETE, key) for key in changes.removed),
        ],
    )
