"""Options of the stream consumer, under the names that it always had."""

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
        doc="Name of this consumer within the group; by default made of host, time and chance.",
    )
    client_id: str | None = option(
        "client.id", "string", default=None, doc="Name told to brokers; by default the group's."
    )
    socket_timeout_ms: int = option(
        "socket.timeout.ms",
        "int",
        default=30_000,
        at_least=1,
        doc="Longest wait for the answer to a request, beside the wait that it asks for.",
    )
    socket_receive_buffer_bytes: int = option(
        "socket.receive.buffer.bytes",
        "int",
        default=64 * 1024,
        reserved=EVENT_LOOP,
        doc="Receive buffer of connections.",
    )
    fetch_message_max_bytes: int = option(
        "fetch.message.max.bytes",
        "int",
        default=1024 * 1024,
        at_least=1,
        doc="Most bytes of one partition in one fetch; one larger message comes all the same.",
    )
    fetch_min_bytes: int = option(
        "fetch.min.bytes", "int", default=1, at_least=0, doc="Bytes that a fetch waits for."
    )
    fetch_wait_max_ms: int = option(
        "fetch.wait.max.ms", "int", default=100, at_least=0, doc="Longest that a fetch waits."
    )
    barnabas_unpacked_record_max_bytes: int = option(
        "barnabas.unpacked.record.max.bytes",
        "int",
        default=16_777_216,
        at_least=1,
        doc="Largest record that is unpacked from a compressed batch, unless four times the size "
        "of the batch is more.",
    )
    num_consumer_fetchers: int = option(
        "num.consumer.fetchers",
        "int",
        default=1,
        at_least=1,
        doc="Fetchers for each broker; a partition always has the same one.",
    )
    queued_max_message_chunks: int = option(
        "queued.max.message.chunks",
        "int",
        default=2,
        at_least=1,
        doc="Chunks that wait for a stream's reader before its partitions are fetched no more.",
    )
    auto_commit_enable: bool = option(
        "auto.commit.enable",
        "boolean",
        default=True,
        doc="Whether what was consumed is committed from time to time, and at the end.",
    )
    auto_commit_interval_ms: int = option(
        "auto.commit.interval.ms",
        "int",
        default=60_000,
        at_least=1,
        doc="Time between such commits.",
    )
    auto_offset_reset: str = option(
        "auto.offset.reset",
        "string",
        default="largest",
        choices=("smallest", "largest"),
        doc="Where to begin without a committed offset, or with one that the log does not have.",
    )
    rebalance_max_retries: int = option(
        "rebalance.max.retries",
        "int",
        default=4,
        at_least=0,
        doc="Attempts to take partitions over after which a rebalance fails.",
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
        doc="Pause before looking for the leaders of partitions that lost theirs.",
    )
    consumer_timeout_ms: int = option(
        "consumer.timeout.ms",
        "int",
        default=-1,
        at_least=0,
        besides=(-1,),
        doc="Longest wait of a stream for the next message; -1 waits forever.",
    )
    exclude_internal_topics: bool = option(
        "exclude.internal.topics",
        "boolean",
        default=True,
        doc="Whether topics of the brokers' own are left out of patterns.",
    )
    partition_assignment_strategy: str = option(
        "partition.assignment.strategy",
        "string",
        default="range",
        choices=("range", "roundrobin"),
        doc="How the partitions are spread over the streams of the group.",
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
        doc="Whether offsets that are kept in Kafka are written into the tree, too.",
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
        doc="Longest wait for the answer to a commit.",
    )
    zookeeper_session_timeout_ms: int = option(
        "zookeeper.session.timeout.ms",
        "int",
        default=6000,
        at_least=1,
        doc="Silence after which this consumer counts as dead.",
    )
    zookeeper_connection_timeout_ms: int = option(
        "zookeeper.connection.timeout.ms",
        "int",
        default=6000,
        at_least=1,
        doc="Longest wait for the first connection to ZooKeeper.",
    )
    zookeeper_sync_time_ms: int = option(
        "zookeeper.sync.time.ms",
        "int",
        default=2000,
        reserved="a rebalance reads what its watches told of, and is tried again otherwise",
        doc="How far behind a ZooKeeper server may be.",
    )

    group: str
    """group.id, which is there."""

    def _derive(self, attributes: dict[str, Any]) -> None:
        if not self.group_id or "/" in self.group_id:
            raise ConfigError(f"group.id={self.group_id}: a name without / is needed")
        attributes["group"] = self.group_id
