"""`kafka-client-metrics`: subscriptions to the metrics that clients push."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flag, Flags, Given, UsageError
from barnabas.cli.session import run as run_session

if TYPE_CHECKING:
    from barnabas.admin.config_entries import Resource
    from barnabas.client.cluster_client import ClusterClient

FAILURE = "Error while executing client metrics command : "
FAILS_ON_STDOUT = True


def _interval(text: str) -> str:
    if text:
        try:
            int(text)
        except ValueError:
            raise ValueError(
                "Invalid interval value. Enter an integer, or leave empty to reset."
            ) from None
    return text


OPTIONS = {"interval": "interval.ms", "match": "match", "metrics": "metrics"}
"""Flag → option of the subscription."""

FLAGS = Flags(
    "Show and change which metrics clients push.",
    (
        BOOTSTRAP,
        COMMAND_CONFIG,
        Flag("--alter", help="create or change a subscription"),
        Flag("--delete", help="delete a subscription"),
        Flag("--describe", help="show subscriptions"),
        Flag("--list", help="list the names of subscriptions"),
        Flag("--name", "NAME", "name of the subscription"),
        Flag("--generate-name", help="name it by a new UUID"),
        Flag("--interval", "MS", "how often clients push; empty: the default", _interval),
        Flag("--match", "K=V[,...]", "which clients; empty: all"),
        Flag("--metrics", "PREFIX[,...]", "which metrics; empty: none"),
    ),
    one_of=(("alter", "delete", "describe", "list"),),
    excludes={
        "name": ("generate-name",),
        "list": ("name", "generate-name", "interval", "match", "metrics"),
        "describe": ("generate-name", "interval", "match", "metrics"),
        "delete": ("generate-name", "interval", "match", "metrics"),
    },
)


def run(given: Given) -> None:
    """Do what is asked for."""
    if "bootstrap-server" not in given:
        raise UsageError("--bootstrap-server must be specified.")
    if "alter" in given and not {"name", "generate-name"} & given.values.keys():
        raise UsageError("One of --name or --generate-name must be specified with --alter.")
    if "delete" in given and "name" not in given:
        raise UsageError("A client metrics resource name must be specified with --delete.")

    async def work(client: ClusterClient) -> None:
        if "alter" in given:
            await _alter(client, given)
        elif "delete" in given:
            await _delete(client, given["name"])
        elif "describe" in given:
            await _describe(client, given["name"])
        else:
            print("\n".join(await _names(client)))

    run_session(given.connection(), work)


def _resource(name: str) -> Resource:
    from barnabas.admin.config_entries import ConfigResourceType, Resource

    return Resource(ConfigResourceType.CLIENT_METRICS, name)


async def _names(client: ClusterClient) -> list[str]:
    from barnabas.admin.configs import list_client_metrics_resources

    return await list_client_metrics_resources(client)


async def _options(client: ClusterClient, name: str) -> dict[str, str]:
    from barnabas.admin.config_entries import ConfigSource
    from barnabas.admin.configs import describe_configs

    return {
        entry.name: entry.value or ""
        for entry in await describe_configs(client, _resource(name))
        if entry.source is ConfigSource.CLIENT_METRICS
    }


async def _alter(client: ClusterClient, given: Given) -> None:
    import uuid

    from barnabas.admin.config_entries import AlterConfigOp, Change
    from barnabas.admin.configs import alter_configs
    from barnabas.model.ids import uuid_text

    name = given["name"] or uuid_text(uuid.uuid4().bytes)
    changes = [
        Change(AlterConfigOp.SET, option, given[flag])
        if given[flag]
        else Change(AlterConfigOp.DELETE, option)
        for flag, option in OPTIONS.items()
        if flag in given
    ]
    await alter_configs(client, _resource(name), changes)
    print(f"Altered client metrics config for {name}.")


async def _delete(client: ClusterClient, name: str) -> None:
    from barnabas.admin.config_entries import AlterConfigOp, Change
    from barnabas.admin.configs import alter_configs

    options = await _options(client, name)
    await alter_configs(
        client, _resource(name), [Change(AlterConfigOp.DELETE, option) for option in options]
    )
    print(f"Deleted client metrics config for {name}.")


async def _describe(client: ClusterClient, name: str | None) -> None:
    for each in [name] if name is not None else await _names(client):
        print(f"Client metrics configs for {each} are:")
        for option, value in (await _options(client, each)).items():
            print(f"  {option}={value}")
