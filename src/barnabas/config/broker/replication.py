"""Replication, the controller and controlled shutdown."""

from __future__ import annotations

from barnabas.config.option import Section, option
from barnabas.config.reasons import IO_THREADS


class ReplicationOptions(Section):
    """Replication, the controller and controlled shutdown."""

    num_replica_fetchers: int = option(
        "num.replica.fetchers",
        "int",
        default=1,
        at_least=1,
        dynamic="cluster",
        doc="Fetcher connections per source broker.",
    )
    num_replica_alter_log_dirs_threads: int | None = option(
        "num.replica.alter.log.dirs.threads",
        "int",
        default=None,
        reserved=IO_THREADS,
        doc="Threads that move partitions between log directories.",
    )
    replica_lag_time_max_ms: int = option(
        "replica.lag.time.max.ms",
        "long",
        default=30_000,
        at_least=1,
        doc="How long a follower may lag before it is removed from the ISR.",
    )
    replica_fetch_max_bytes: int = option(
        "replica.fetch.max.bytes",
        "int",
        default=1_048_576,
        at_least=0,
        doc="Bytes a follower requests per partition.",
    )
    replica_fetch_response_max_bytes: int = option(
        "replica.fetch.response.max.bytes",
        "int",
        default=10_485_760,
        at_least=0,
        doc="Bytes a follower requests per fetch.",
    )
    replica_fetch_min_bytes: int = option(
        "replica.fetch.min.bytes",
        "int",
        default=1,
        at_least=0,
        doc="Minimum bytes per fetch response; the leader waits for them.",
    )
    replica_fetch_wait_max_ms: int = option(
        "replica.fetch.wait.max.ms",
        "int",
        default=500,
        at_least=0,
        doc="Maximum time a leader holds a follower's fetch.",
    )
    replica_fetch_backoff_ms: int = option(
        "replica.fetch.backoff.ms",
        "int",
        default=1_000,
        at_least=0,
        doc="How long a follower backs off after an error.",
    )
    replica_socket_timeout_ms: int = option(
        "replica.socket.timeout.ms",
        "int",
        default=30_000,
        at_least=1,
        doc="Socket timeout of a follower's fetches.",
    )
    replica_socket_receive_buffer_bytes: int = option(
        "replica.socket.receive.buffer.bytes",
        "int",
        default=65_536,
        at_least=-1,
        doc="Receive buffer of a follower's sockets; if unset, the system tunes it.",
    )
    replica_high_watermark_checkpoint_interval_ms: int = option(
        "replica.high.watermark.checkpoint.interval.ms",
        "long",
        default=5_000,
        at_least=1,
        doc="How often high watermarks are checkpointed.",
    )
    replica_selector_class: str | None = option(
        "replica.selector.class",
        "string",
        default=None,
        choices=(
            "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "org.apache.kafka.common.replica.LeaderSelector",
        ),
        doc="Selects the replica a consumer reads from: one in its rack, or the leader.",
    )
    controlled_shutdown_enable: bool = option(
        "controlled.shutdown.enable",
        "boolean",
        default=True,
        doc="Whether a broker moves its leaderships away before it shuts down.",
    )
    controlled_shutdown_max_retries: int = option(
        "controlled.shutdown.max.retries",
        "int",
        default=3,
        at_least=0,
        doc="Attempts at a controlled shutdown.",
    )
    controlled_shutdown_retry_backoff_ms: int = option(
        "controlled.shutdown.retry.backoff.ms",
        "long",
        default=5_000,
        at_least=0,
        doc="Pause between these attempts.",
    )
    controller_socket_timeout_ms: int = option(
        "controller.socket.timeout.ms",
        "int",
        default=30_000,
        at_least=1,
        doc="Socket timeout of the controller's requests to brokers.",
    )
    leader_replication_throttled_rate: int = option(
        "leader.replication.throttled.rate",
        "long",
        default=2**63 - 1,
        at_least=0,
        dynamic="broker",
        doc="Bytes per second a leader sends to throttled replicas.",
    )
    follower_replication_throttled_rate: int = option(
        "follower.replication.throttled.rate",
        "long",
        default=2**63 - 1,
        at_least=0,
        dynamic="broker",
        doc="Bytes per second a follower fetches for throttled replicas.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = option(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "long",
        default=2**63 - 1,
        at_least=0,
        dynamic="broker",
        doc="Bytes per second for moves between log directories.",
    )
