"""The table of Kafka's tools. `barnabas.cli.main` reads it, so it imports nothing."""

from __future__ import annotations

from typing import NamedTuple


class Tool(NamedTuple):
    """One of Kafka's tools, by the name that its script has in Kafka's `bin/`."""

    name: str
    module: str


TOOLS = (
    Tool("kafka-acls", "barnabas.cli.kafka.acls"),
    Tool("kafka-broker-api-versions", "barnabas.cli.kafka.api_versions"),
    Tool("kafka-client-metrics", "barnabas.cli.kafka.client_metrics"),
    Tool("kafka-cluster", "barnabas.cli.kafka.cluster"),
    Tool("kafka-configs", "barnabas.cli.kafka.configs"),
    Tool("kafka-console-consumer", "barnabas.cli.kafka.console_consumer"),
    Tool("kafka-console-producer", "barnabas.cli.kafka.console_producer"),
    Tool("kafka-consumer-groups", "barnabas.cli.kafka.consumer_groups"),
    Tool("kafka-consumer-perf-test", "barnabas.cli.kafka.consumer_perf_test"),
    Tool("kafka-delegation-tokens", "barnabas.cli.kafka.delegation_tokens"),
    Tool("kafka-delete-records", "barnabas.cli.kafka.delete_records"),
    Tool("kafka-dump-log", "barnabas.cli.kafka.dump_log"),
    Tool("kafka-e2e-latency", "barnabas.cli.kafka.e2e_latency"),
    Tool("kafka-features", "barnabas.cli.kafka.features"),
    Tool("kafka-get-offsets", "barnabas.cli.kafka.get_offsets"),
    Tool("kafka-leader-election", "barnabas.cli.kafka.leader_election"),
    Tool("kafka-log-dirs", "barnabas.cli.kafka.log_dirs"),
    Tool("kafka-mirror-maker", "barnabas.cli.kafka.mirror_maker"),
    Tool("kafka-preferred-replica-election", "barnabas.cli.kafka.preferred_replica_election"),
    Tool("kafka-producer-perf-test", "barnabas.cli.kafka.producer_perf_test"),
    Tool("kafka-reassign-partitions", "barnabas.cli.kafka.reassign_partitions"),
    Tool("kafka-replica-verification", "barnabas.cli.kafka.replica_verification"),
    Tool("kafka-server-start", "barnabas.cli.kafka.server_start"),
    Tool("kafka-server-stop", "barnabas.cli.kafka.server_stop"),
    Tool("kafka-streams-application-reset", "barnabas.cli.kafka.streams_application_reset"),
    Tool("kafka-topics", "barnabas.cli.kafka.topics"),
    Tool("kafka-transactions", "barnabas.cli.kafka.transactions"),
    Tool("kafka-verifiable-consumer", "barnabas.cli.kafka.verifiable_consumer"),
    Tool("kafka-verifiable-producer", "barnabas.cli.kafka.verifiable_producer"),
    Tool("connect-mirror-maker", "barnabas.cli.kafka.connect_mirror_maker"),
    Tool("zookeeper-shell", "barnabas.cli.kafka.zookeeper_shell"),
)


def tool_named(name: str) -> Tool | None:
    """Return the tool of this name, with or without `.sh`."""
    name = name.removesuffix(".sh")
    return next((tool for tool in TOOLS if tool.name == name), None)


def nearest_name(name: str) -> str | None:
    """Return the tool that a misspelt name probably means, with its ending."""
    from difflib import get_close_matches

    bare = name.removesuffix(".sh")
    near = get_close_matches(bare, [tool.name for tool in TOOLS], n=1)
    return near[0] + name.removeprefix(bare) if near else None
