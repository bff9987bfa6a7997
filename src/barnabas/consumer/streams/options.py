"""Options of the stream consumer, under their original names."""

from __future__ import annotations

from typing import Any

from barnabas.config.clients.options import ClientSection
from barnabas.config.option import option
from barnabas.config.reasons import EVENT_LOOP
from barnabas.model.errors import ConfigError


class StreamOptions(ClientSection):
    """Options of the stream consumer."""

    group_id: str | None = option(
        "group.id", "string", default=None, doc="The group that shares the partitions."
    )
    zookeeper_connect: str | None = option(
        "zookeeper.connect",
        "string",
        default=None,
        doc="Servers of the ensemble as host:port, with an optional path at the end.",
    )
    bootstrap_servers: str | None = option(
        "bootstrap.servers",
        "string",
        default=None,
        doc="Brokers to ask first; by default those that are registered in the tree.",
    )
    consumer_id: str | None = option(
        "consumer.id",
        "string",
        default=None,
        doc="Name of this consumer within the group; by default host, time and a random number.",
    )
    client_id: str | None = option(
        "client.id", "string", default=None, doc="Name sent to brokers; by default the group's."
    )
    socket_timeout_ms: int = option(
        "socket.timeout.ms",
        "int",
        default=30_000,
        at_least=1,
        doc="Maximum wait for a response, in addition to the wait that the request asks for.",
    )
    socket_receive_buffer_bytes: int = option(
        "socket.receive.buffer.bytes",
        "int",
        default=64 * 1024,
        reserved=EVENT_LOOP,
        doc="Size of the receive buffer of connections.",
    )
    fetch_message_max_bytes: int = option(
        "fetch.message.max.bytes",
        "int",
        default=1024 * 1024,
        at_least=1,
        doc="Maximum bytes of one partition in one fetch; a larger message is still returned.",
    )
    fetch_min_bytes: int = option(
        "fetch.min.bytes", "int", default=1, at_least=0, doc="Bytes that a fetch waits for."
    )
    fetch_wait_max_ms: int = option(
        "fetch.wait.max.ms", "int", default=100, at_least=0, doc="Maximum wait of a fetch."
    )
    barnabas_unpacked_record_max_bytes: int = option(
        "barnabas.unpacked.record.max.bytes",
        "int",
        default=16_777_216,
        at_least=1,
        doc="Maximum size of a record in a compressed batch, unless four times the size "
        "of the batch is larger.",
    )
    num_consumer_fetchers: int = option(
        "num.consumer.fetchers",
        "int",
        default=1,
        at_least=1,
        doc="Fetchers per broker; a partition always has the same one.",
    )
    queued_max_message_chunks: int = option(
        "queued.max.message.chunks",
        "int",
        default=2,
        at_least=1,
        doc="Chunks that may wait for a stream's reader before its partitions are not fetched.",
    )
    auto_commit_enable: bool = option(
        "auto.commit.enable",
        "boolean",
        default=True,
        doc="Whether consumed offsets are committed periodically, and on shutdown.",
    )
    auto_commit_interval_ms: int = option(
        "auto.commit.interval.ms",
        "int",
        default=60_000,
        at_least=1,
        doc="Interval of such commits.",
    )
    auto_offset_reset: str = option(
        "auto.offset.reset",
        "string",
        default="largest",
        choices=("smallest", "largest"),
        doc="Where to begin without a committed offset, or with one that is out of range.",
    )
    rebalance_max_retries: int = option(
        "rebalance.max.retries",
        "int",
        default=4,
        at_least=0,
        doc="Attempts to take over partitions before a rebalance fails.",
    )
    rebalance_backoff_ms: int = option(
        "rebalance.backoff.ms",
        "int",
        default=2000,
        at_least=0,
        doc="Pause between those attempts.",
    )
    refresh_leader_backoff_ms: int = option(
        "refresh.leader.backoff.ms",
        "int",
        default=200,
        at_least=0,
        doc="Pause before looking up the leaders of partitions that lost theirs.",
    )
    consumer_timeout_ms: int = option(
        "consumer.timeout.ms",
        "int",
        default=-1,
        at_least=0,
        besides=(-1,),
        doc="Maximum wait of a stream for the next message; -1 waits forever.",
    )
    exclude_internal_topics: bool = option(
        "exclude.internal.topics",
        "boolean",
        default=True,
        doc="Whether internal topics are excluded from patterns.",
    )
    partition_assignment_strategy: str = option(
        "partition.assignment.strategy",
        "string",
        default="range",
        choices=("range", "roundrobin"),
        doc="How partitions are distributed over the streams of the group.",
    )
    offsets_storage: str = option(
        "offsets.storage",
        "string",
        default="zookeeper",
        choices=("zookeeper", "kafka"),
        doc="Where committed offsets are kept.",
    )
    dual_commit_enabled: bool = option(
        "dual.commit.enabled",
        "boolean",
        default=True,
        doc="Whether offsets that are kept in Kafka are also written to the tree.",
    )
    offsets_commit_max_retries: int = option(
        "offsets.commit.max.retries",
        "int",
        default=5,
        at_least=0,
        doc="Attempts to commit to Kafka after the first.",
    )
    offsets_channel_backoff_ms: int = option(
        "offsets.channel.backoff.ms",
        "int",
        default=1000,
        at_least=0,
        doc="Pause between those attempts.",
    )
    offsets_channel_socket_timeout_ms: int = option(
        "offsets.channel.socket.timeout.ms",
        "int",
        default=10_000,
        at_least=1,
        doc="Maximum wait for the response to a commit.",
    )
    zookeeper_session_timeout_ms: int = option(
        "zookeeper.session.timeout.ms",
        "int",
        default=6000,
        at_least=1,
        doc="Session timeout after which this consumer counts as dead.",
    )
    zookeeper_connection_timeout_ms: int = option(
        "zookeeper.connection.timeout.ms",
        "int",
        default=6000,
        at_least=1,
        doc="Maximum wait for the first connection to ZooKeeper.",
    )
    zookeeper_sync_time_ms: int = option(
        "zookeeper.sync.time.ms",
        "int",
        default=2000,
        reserved="a rebalance reads what its watches reported, and is retried otherwise",
        doc="How far a ZooKeeper server may lag behind.",
    )

    group: str
    """The group.id, which must be set."""

    def _derive(self, attributes: dict[str, Any]) -> None:
        if not self.group_id or "/" in self.group_id:
            raise ConfigError(f"group.id={self.group_id}: must be a name without /")
        attributes["group"] = self.group_id
