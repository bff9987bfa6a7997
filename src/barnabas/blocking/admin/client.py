"""The blocking admin client: each call runs on a loop in its own thread, and is waited for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from barnabas.admin import client_telemetry, producers, quotas, tokens
from barnabas.admin import cluster as typed_cluster
from barnabas.admin import configs as typed_configs
from barnabas.admin import groups as typed_groups
from barnabas.admin import offsets as typed_offsets
from barnabas.admin.core import open_client, within
from barnabas.blocking.admin import (
    cluster,
    configs,
    groups,
    partitions,
    security,
    topics,
    transactions,
)
from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.client_id import admin_client_id
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection_stats import refuse_raw, with_count
from barnabas.client.errors import IllegalStateError
from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.options import parse_client_options

P = ParamSpec("P")
R = TypeVar("R")


def call(
    function: Callable[Concatenate[ClusterClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[KafkaAdminClient, P], R]:
    """Turn a function of a cluster client into a method."""

    @functools.wraps(function)
    def method(self: KafkaAdminClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.run(functools.partial(function, self.client, *args, **kwargs))

    return method


class KafkaAdminClient:
    """Administer a cluster; the options are those of kafka-python, or Kafka's dotted ones.

        with KafkaAdminClient(bootstrap_servers="broker:9092") as admin:
            admin.create_topics([NewTopic("orders", num_partitions=6)])
            print(admin.list_topics())

    The constructor connects: `NoBrokersAvailable` means that no broker could be reached within
    `bootstrap_timeout_ms`. Calls may be made from any thread. A call is retried after transient
    failures for `request_timeout_ms`, and takes `default_api_timeout_ms` at most.
    """

    def __init__(self, **configs: Any) -> None:
        self.options = parse_client_options(AdminOptions, configs)
        client_id = admin_client_id(self.options)
        self._thread = LoopThread(client_id)
        try:
            self._client: ClusterClient | None = self._thread.call(
                open_client(self.options, client_id)
            )
        except BaseException:
            self._thread.stop()
            raise

    @property
    def client(self) -> ClusterClient:
        """The cluster client, for the functions of `barnabas.admin`; see `run`."""
        if self._client is None:
            raise IllegalStateError("the admin client is closed")
        return self._client

    def run(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Run a coroutine function on the client's loop and return its result.

        admin.run(lambda: describe_features(admin.client))
        """
        return self._thread.call(within(self.options.default_api_timeout_ms, work()))

    def metrics(self, raw: bool = False) -> dict[str, dict[str, float]]:
        """Return groups of metrics.

            admin.metrics()["admin-client-metrics"]["request-total"]

        They are plain numbers: there are no objects behind them for `raw`.
        """
        refuse_raw(raw)
        client = self.client

        async def read() -> dict[str, dict[str, float]]:
            return with_count(client.metrics("admin-client"))

        return self._thread.call(read())

    def close(self) -> None:
        """Close the connections and end the thread; a second call does nothing."""
        if self._client is None:
            return
        client, self._client = self._client, None
        try:
            self._thread.call(client.close())
        finally:
            self._thread.stop()

    def __enter__(self) -> KafkaAdminClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Topics and partitions.
    create_topics = call(topics.create_topics)
    delete_topics = call(topics.delete_topics)
    list_topics = call(topics.list_topics)
    describe_topics = call(topics.describe_topics)
    describe_topic_partitions = call(topics.describe_topic_partitions)
    wait_for_topics = call(topics.wait_for_topics)
    create_partitions = call(topics.create_partitions)
    delete_records = call(partitions.delete_records)
    elect_leaders = call(partitions.elect_leaders)
    perform_leader_election = call(partitions.elect_leaders)
    alter_partition_reassignments = call(partitions.alter_partition_reassignments)
    list_partition_reassignments = call(partitions.list_partition_reassignments)
    list_partition_offsets = call(partitions.list_partition_offsets)
    list_offsets = call(typed_offsets.find_offsets)

    # Options.
    describe_configs = call(configs.describe_configs)
    alter_configs = call(configs.alter_configs)
    incremental_alter_configs = call(configs.incremental_alter_configs)
    reset_configs = call(configs.reset_configs)
    list_config_resources = call(configs.list_config_resources)
    list_client_metrics_resources = call(typed_configs.list_client_metrics_resources)

    # The cluster.
    describe_cluster = call(cluster.describe_cluster)
    describe_log_dirs = call(cluster.describe_log_dirs)
    alter_replica_log_dirs = call(cluster.alter_replica_log_dirs)
    describe_metadata_quorum = call(cluster.describe_metadata_quorum)
    describe_features = call(cluster.describe_features)
    update_features = call(cluster.update_features)
    get_broker_version_data = call(cluster.get_broker_version_data)
    api_versions = call(cluster.api_versions)
    unregister_broker = call(typed_cluster.unregister_broker)

    # Groups.
    list_groups = call(groups.list_groups)
    list_consumer_groups = call(groups.list_consumer_groups)
    describe_groups = call(groups.describe_groups)
    describe_consumer_groups = call(groups.describe_consumer_groups)
    list_group_offsets = call(groups.list_group_offsets)
    list_consumer_group_offsets = call(groups.list_consumer_group_offsets)
    alter_group_offsets = call(groups.alter_group_offsets)
    alter_consumer_group_offsets = call(groups.alter_group_offsets)
    reset_group_offsets = call(groups.reset_group_offsets)
    delete_group_offsets = call(groups.delete_group_offsets)
    delete_consumer_group_offsets = call(groups.delete_group_offsets)
    delete_groups = call(groups.delete_groups)
    delete_consumer_groups = call(groups.delete_consumer_groups)
    remove_group_members = call(groups.remove_group_members)
    remove_members_from_consumer_group = call(typed_groups.remove_members)

    # Transactions and producers.
    list_transactions = call(transactions.list_transactions)
    describe_transactions = call(transactions.describe_transactions)
    describe_producers = call(transactions.describe_producers)
    abort_transaction = call(transactions.abort_transaction)
    find_hanging_transactions = call(transactions.find_hanging_transactions)
    fence_producers = call(producers.fence_producers)

    # Who may do what, and how much.
    describe_acls = call(security.describe_acls)
    create_acls = call(security.create_acls)
    delete_acls = call(security.delete_acls)
    describe_user_scram_credentials = call(security.describe_user_scram_credentials)
    alter_user_scram_credentials = call(security.alter_user_scram_credentials)
    create_delegation_token = call(tokens.create_delegation_token)
    renew_delegation_token = call(tokens.renew_delegation_token)
    expire_delegation_token = call(tokens.expire_delegation_token)
    describe_delegation_token = call(tokens.describe_delegation_token)
    describe_client_quotas = call(quotas.describe_client_quotas)
    alter_client_quotas = call(quotas.alter_client_quotas)
    describe_quota_usage = call(quotas.describe_quota_usage)
    describe_client_telemetry = call(client_telemetry.describe_client_telemetry)
