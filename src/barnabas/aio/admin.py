"""`AIOKafkaAdminClient`: administer a cluster from asyncio code.

Calls that aiokafka has take its arguments and return its results; the others take and return the
values of `barnabas.admin`, under the names of Kafka's own admin client.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from barnabas.admin import (
    acls,
    client_telemetry,
    cluster,
    configs,
    features,
    group_offsets,
    groups,
    log_dirs,
    offsets,
    producers,
    quotas,
    reassignments,
    scram,
    tokens,
    topic_descriptions,
    transactions,
)
from barnabas.admin.core import open_client, within
from barnabas.aio import admin_calls as calls
from barnabas.aio.running import running_loop
from barnabas.client.client_id import admin_client_id
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection_stats import with_count
from barnabas.client.errors import IllegalStateError
from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.options import parse_client_options

P = ParamSpec("P")
R = TypeVar("R")

Method = Callable[Concatenate["AIOKafkaAdminClient", P], Coroutine[Any, Any, R]]


def call(
    function: Callable[Concatenate[ClusterClient, P], Coroutine[Any, Any, R]],
) -> Method[P, R]:
    """Turn a function of a cluster client into a method."""

    @functools.wraps(function)
    async def method(self: AIOKafkaAdminClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        limit_ms = self.options.default_api_timeout_ms
        return await within(limit_ms, function(self.client, *args, **kwargs))

    return method


class AIOKafkaAdminClient:
    """Administer a cluster; the options are those of aiokafka, or Kafka's dotted ones.

        async with AIOKafkaAdminClient(bootstrap_servers="broker:9092") as admin:
            await admin.create_topics([NewTopic("orders", 6, 1)])
            print(await admin.list_topics())

    Without `async with`, call `start` first and `close` at the end. `loop` is not needed: a client
    belongs to the loop on which it is started, and raises if another one was given.
    """

    def __init__(self, *, loop: asyncio.AbstractEventLoop | None = None, **configs: Any) -> None:
        self._loop = loop
        self.options = parse_client_options(AdminOptions, configs)
        self._client_id = admin_client_id(self.options)
        self._client: ClusterClient | None = None

    @property
    def client(self) -> ClusterClient:
        """The cluster client, for the functions of `barnabas.admin`."""
        if self._client is None:
            raise IllegalStateError(
                "the admin client is closed, or was not started: await start() first"
            )
        return self._client

    async def start(self) -> None:
        """Connect; raises NoBrokersAvailable if no broker can be reached.

        admin = AIOKafkaAdminClient(bootstrap_servers="broker:9092")
        await admin.start()
        """
        if self._client is None:
            running_loop(self._loop)
            self._client = await open_client(self.options, self._client_id)

    async def close(self) -> None:
        """Close the connections; a second call does nothing.

        await admin.close()
        """
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    async def __aenter__(self) -> AIOKafkaAdminClient:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return groups of metrics.

        admin.metrics()["admin-client-metrics"]["request-total"]
        """
        return with_count(self.client.metrics("admin-client"))

    # Calls of aiokafka.
    create_topics = call(calls.create_topics)
    delete_topics = call(calls.delete_topics)
    list_topics = call(calls.list_topics)
    describe_topics = call(calls.describe_topics)
    describe_cluster = call(calls.describe_cluster)
    describe_configs = call(calls.describe_configs)
    alter_configs = call(calls.alter_configs)
    create_partitions = call(calls.create_partitions)
    describe_consumer_groups = call(calls.describe_consumer_groups)
    list_consumer_groups = call(calls.list_consumer_groups)
    find_coordinator = call(calls.find_coordinator)
    list_consumer_group_offsets = call(calls.list_consumer_group_offsets)
    delete_records = call(calls.delete_records)

    # Calls named as in Kafka's own client, with typed results.
    describe_topic_partitions = call(topic_descriptions.describe_topic_partitions)
    elect_leaders = call(reassignments.elect_leaders)
    alter_partition_reassignments = call(reassignments.alter_partition_reassignments)
    list_partition_reassignments = call(reassignments.list_partition_reassignments)
    list_offsets = call(offsets.find_offsets)
    incremental_alter_configs = call(configs.alter_resources)
    list_config_resources = call(configs.list_config_resources)
    list_client_metrics_resources = call(configs.list_client_metrics_resources)
    describe_log_dirs = call(log_dirs.describe_log_dirs_of)
    alter_replica_log_dirs = call(log_dirs.alter_replica_log_dirs)
    describe_metadata_quorum = call(cluster.describe_quorum)
    describe_features = call(features.describe_features)
    update_features = call(features.update_features)
    unregister_broker = call(cluster.unregister_broker)
    list_groups = call(groups.list_groups)
    describe_groups = call(groups.describe_groups)
    delete_consumer_groups = call(groups.delete_groups)
    remove_members_from_consumer_group = call(groups.remove_members)
    list_group_offsets = call(group_offsets.list_group_offsets)
    alter_consumer_group_offsets = call(group_offsets.commit_offsets)
    delete_consumer_group_offsets = call(group_offsets.delete_group_offsets)
    list_transactions = call(transactions.list_transactions_of)
    describe_transactions = call(transactions.describe_transactions)
    abort_transaction = call(transactions.abort_transaction)
    describe_producers = call(producers.describe_producers)
    fence_producers = call(producers.fence_producers)
    create_acls = call(acls.create_acls)
    describe_acls = call(acls.describe_acls)
    delete_acls = call(acls.delete_acls)
    create_delegation_token = call(tokens.create_delegation_token)
    renew_delegation_token = call(tokens.renew_delegation_token)
    expire_delegation_token = call(tokens.expire_delegation_token)
    describe_delegation_token = call(tokens.describe_delegation_token)
    describe_client_quotas = call(quotas.describe_client_quotas)
    alter_client_quotas = call(quotas.alter_client_quotas)
    describe_quota_usage = call(quotas.describe_quota_usage)
    describe_client_telemetry = call(client_telemetry.describe_client_telemetry)
    describe_user_scram_credentials = call(scram.describe_user_scram_credentials)
    alter_user_scram_credentials = call(scram.alter_user_scram_credentials)
