"""Options are described with their sources and changed one by one, also at brokers that cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.network.scripted_broker import Script, ScriptedBroker

from barnabas.admin.config_entries import (
    AlterConfigOp,
    Change,
    ConfigResourceType,
    ConfigSource,
    Resource,
)
from barnabas.admin.configs import alter_configs, changed, describe_configs
from barnabas.client.cluster_client import ANY, ClusterClient
from barnabas.model.errors import RequestError
from barnabas.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.wire.messages.alter_configs import AlterConfigsResourceResponse as FullResponse
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from barnabas.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

TOPIC = Resource(ConfigResourceType.TOPIC, "t")
CHANGES = [
    Change(AlterConfigOp.SET, "retention.ms", "5"),
    Change(AlterConfigOp.APPEND, "cleanup.policy", "compact"),
    Change(AlterConfigOp.DELETE, "segment.ms"),
]


def converse(
    script: Script, client: Callable[[ClusterClient, ScriptedBroker], Awaitable[Any]]
) -> Any:
    async def conversation() -> Any:
        async with (
            ScriptedBroker(script) as broker,
            ClusterClient([broker.address]) as cluster_client,
        ):
            return await client(cluster_client, broker)

    return asyncio.run(conversation())


def described(request: DescribeConfigsRequest, version: int) -> DescribeConfigsResponse:
    entries = [
        ("segment.ms", "7", 1),
        ("cleanup.policy", "delete", 1),
        ("retention.bytes", "-1", 5),
        ("strange", "1", 99),
    ]
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=2,
                resource_name="t",
                configs=[
                    DescribeConfigsResourceResult(name=name, value=value, config_source=source)
                    for name, value, source in entries
                ],
            )
        ]
    )


def test_options_come_sorted_with_their_sources() -> None:
    entries = converse(
        {DescribeConfigsRequest: described},
        lambda cluster_client, broker: describe_configs(cluster_client, TOPIC),
    )
    assert [(entry.name, entry.value, entry.source) for entry in entries] == [
        ("cleanup.policy", "delete", ConfigSource.TOPIC),
        ("retention.bytes", "-1", ConfigSource.DEFAULT),
        ("segment.ms", "7", ConfigSource.TOPIC),
        ("strange", "1", ConfigSource.UNKNOWN),
    ]


def test_changes_go_out_one_by_one_where_the_broker_knows_them() -> None:
    script: Script = {
        IncrementalAlterConfigsRequest: lambda request, version: IncrementalAlterConfigsResponse(
            responses=[AlterConfigsResourceResponse(resource_type=2, resource_name="t")]
        )
    }

    async def client(cluster_client: ClusterClient, broker: ScriptedBroker) -> Any:
        await alter_configs(cluster_client, TOPIC, CHANGES, validate_only=True)
        return broker.asked(IncrementalAlterConfigsRequest)[0].message

    request = converse(script, client)
    assert request.validate_only
    [resource] = request.resources
    assert (resource.resource_type, resource.resource_name) == (2, "t")
    assert [(c.name, c.config_operation, c.value) for c in resource.configs] == [
        ("retention.ms", 0, "5"),
        ("cleanup.policy", 2, "compact"),
        ("segment.ms", 1, None),
    ]


def test_an_old_broker_gets_the_whole_set_with_the_changes_in_it() -> None:
    script: Script = {
        DescribeConfigsRequest: described,
        AlterConfigsRequest: lambda request, version: AlterConfigsResponse(
            responses=[FullResponse(resource_type=2, resource_name="t")]
        ),
    }

    async def client(cluster_client: ClusterClient, broker: ScriptedBroker) -> Any:
        await alter_configs(cluster_client, TOPIC, CHANGES)
        return broker.asked(AlterConfigsRequest)[0].message

    [resource] = converse(script, client).resources
    assert {entry.name: entry.value for entry in resource.configs} == {
        "cleanup.policy": "delete,compact",
        "retention.ms": "5",
    }


def test_a_refusal_is_raised_with_the_brokers_words() -> None:
    refusal = AlterConfigsResourceResponse(
        error_code=40, error_message="no such option", resource_type=2, resource_name="t"
    )
    script: Script = {
        IncrementalAlterConfigsRequest: lambda request, version: IncrementalAlterConfigsResponse(
            responses=[refusal]
        )
    }
    with pytest.raises(RequestError, match="no such option"):
        converse(
            script, lambda cluster_client, broker: alter_configs(cluster_client, TOPIC, CHANGES)
        )


def test_list_changes_keep_order_and_do_not_repeat() -> None:
    present = {"a": "x,y", "b": "1"}
    assert changed(
        present,
        [
            Change(AlterConfigOp.APPEND, "a", "y,z"),
            Change(AlterConfigOp.SUBTRACT, "a", "x"),
            Change(AlterConfigOp.APPEND, "c", "new"),
            Change(AlterConfigOp.DELETE, "missing"),
        ],
    ) == {"a": "y,z", "b": "1", "c": "new"}


def test_a_broker_answers_for_itself_alone() -> None:
    assert Resource(ConfigResourceType.BROKER, "3").destination == 3
    assert Resource(ConfigResourceType.BROKER, "").destination is ANY
    assert TOPIC.destination is ANY
