"""Options that Kafka does not have; their names begin with `barnabas.`."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.config.option import Password, Section, option
from barnabas.model.errors import ConfigError

LOOPBACK = "127.0.0.1"


class MetricsAddress(NamedTuple):
    """Where metrics are served."""

    host: str
    port: int


class OwnOptions(Section):
    """Options that Kafka does not have; their names begin with `barnabas.`."""

    barnabas_diary_enable: bool = option(
        "barnabas.diary.enable",
        "boolean",
        default=True,
        doc="Whether the cluster keeps its diary, which `barnabas why` reads, in the internal "
        "topic __barnabas_diary. It is created with the first entry that does not belong to every "
        "start, and replicated as the offsets topic is.",
    )
    barnabas_diary_retention_ms: int = option(
        "barnabas.diary.retention.ms",
        "long",
        default=604_800_000,
        at_least=60_000,
        doc="How long entries of the diary are kept: the retention.ms with which its topic is "
        "created. Change it later with `barnabas configs`, as that of any topic.",
    )
    barnabas_client_telemetry_enable: bool = option(
        "barnabas.client.telemetry.enable",
        "boolean",
        default=True,
        doc="Whether clients may push their metrics (KIP-714), which `barnabas clients` shows. "
        "They are not asked to until a client-metrics resource subscribes to some.",
    )
    barnabas_otel_metrics_endpoint: str | None = option(
        "barnabas.otel.metrics.endpoint",
        "string",
        default=None,
        doc="Where to push this broker's metrics by OTLP over HTTP, as http://host:4318; "
        "/v1/metrics is appended unless the address has a path.",
    )
    barnabas_otel_metrics_interval_ms: int = option(
        "barnabas.otel.metrics.interval.ms",
        "int",
        default=60_000,
        at_least=1000,
        doc="How often metrics are pushed by OTLP.",
    )
    barnabas_otel_metrics_headers: Password | None = option(
        "barnabas.otel.metrics.headers",
        "password",
        default=None,
        doc="Headers of these pushes, as name=value, separated by commas.",
    )
    barnabas_console_export_enable: bool = option(
        "barnabas.console.export.enable",
        "boolean",
        default=True,
        doc="Whether records can be downloaded from the console.",
    )
    barnabas_console_hosts: tuple[str, ...] = option(
        "barnabas.console.hosts",
        "list",
        default=(),
        doc="Further names under which browsers reach the console, such as that of a proxy in "
        "front of it. Requests for other hosts are rejected: they are how a foreign page would "
        "reach a console behind a firewall.",
    )
    barnabas_console_insecure: bool = option(
        "barnabas.console.insecure",
        "boolean",
        default=False,
        doc="Whether the console may listen on other addresses than the loopback's. It has no TLS "
        "of its own: put a proxy with TLS in front of it.",
    )
    barnabas_console_listener: str | None = option(
        "barnabas.console.listener",
        "string",
        default=None,
        doc="Address of the console, as HOST:PORT; without it there is none. The extra `console` "
        "must be installed.",
    )
    barnabas_console_mode: str = option(
        "barnabas.console.mode",
        "string",
        default="full",
        choices=("full", "read-only", "metadata-only"),
        doc="What users of the console may do at most: all that their ACLs allow, nothing that "
        "changes the cluster, or neither that nor read records.",
    )
    barnabas_initial_users_dir: str | None = option(
        "barnabas.initial.users.dir",
        "string",
        default=None,
        doc="Directory with a file per SCRAM user, as `barnabas security init` writes them. A "
        "broker adds these users and their ACLs to its cluster, each only once.",
    )
    barnabas_log_dir: str | None = option(
        "barnabas.log.dir",
        "string",
        default=None,
        doc="Directory of Kafka's set of log files (server.log, controller.log, state-change.log, "
        "kafka-authorizer.log, kafka-request.log, log-cleaner.log), which `barnabas start` writes "
        "beside standard error.",
    )
    barnabas_log_file_backups: int = option(
        "barnabas.log.file.backups",
        "int",
        default=10,
        at_least=0,
        at_most=10_000,
        doc="How many earlier files of each log in barnabas.log.dir are kept.",
    )
    barnabas_log_file_max_bytes: int = option(
        "barnabas.log.file.max.bytes",
        "long",
        default=104_857_600,
        at_least=1024,
        doc="Size at which a file in barnabas.log.dir is renamed and a new one is begun.",
    )
    barnabas_log_format: str = option(
        "barnabas.log.format",
        "string",
        default="plain",
        choices=("plain", "json", "ecs"),
        doc="How the log lines of `barnabas start` look: plain for people (in files as Kafka's "
        "own), json for one flat object per line, ecs for one in the Elastic Common Schema.",
    )
    barnabas_workers: int = option(
        "barnabas.workers",
        "int",
        default=0,
        at_least=0,
        at_most=256,
        doc="How many broker processes `barnabas start` runs with these options, one per core: "
        "with consecutive ids and ports from broker.id and listeners on, and data in worker-1, "
        "worker-2 and so on below log.dirs. Their supervisor restarts one that dies. 0: no "
        "supervisor, one broker. Internal topics, and those that are created automatically, are "
        "not created before as many brokers are alive as they are to have replicas.",
    )
    barnabas_sendfile_min_bytes: int = option(
        "barnabas.sendfile.min.bytes",
        "int",
        default=65_536,
        at_least=0,
        doc="Fetch responses with at least this many bytes of records use sendfile.",
    )
    barnabas_ssl_crl_location: str | None = option(
        "barnabas.ssl.crl.location",
        "string",
        default=None,
        dynamic="broker",
        doc="File with certificate revocation lists (PEM) of all trusted CAs: revoked clients are "
        "rejected. It is read again when it changes.",
    )
    barnabas_lost_session_silence_enable: bool = option(
        "barnabas.lost.session.silence.enable",
        "boolean",
        default=True,
        doc="Whether a broker that may have lost its session stops serving its partitions until "
        "it knows that no other leader was elected.",
    )
    barnabas_metrics_listener: str | None = option(
        "barnabas.metrics.listener",
        "string",
        default=None,
        dynamic="broker",
        doc="Address on which metrics for Prometheus and the broker's health are served over HTTP, "
        "as host:port; without a host only this machine can connect. Not set: they are not served.",
    )
    barnabas_metrics_partitions_max: int = option(
        "barnabas.metrics.partitions.max",
        "int",
        default=10_000,
        at_least=0,
        dynamic="cluster",
        doc="Largest number of series of one metric that has a series per partition; a metric with "
        "more is left out of scrapes that do not ask for partitions (?collect[]=partitions).",
    )
    barnabas_metrics_ssl_enable: bool = option(
        "barnabas.metrics.ssl.enable",
        "boolean",
        default=False,
        dynamic="broker",
        doc="Whether metrics are served over TLS: with the options ssl.* of the broker, or "
        "listener.name.metrics.ssl.* if those are set.",
    )
    barnabas_metrics_token: Password | None = option(
        "barnabas.metrics.token",
        "password",
        default=None,
        doc="Bearer token that a client must send to read metrics; not for the health paths.",
    )
    barnabas_unpacked_batch_max_bytes: int = option(
        "barnabas.unpacked.batch.max.bytes",
        "long",
        default=268_435_456,
        at_least=1,
        dynamic="cluster",
        doc="Largest decompressed size of a batch; larger batches are rejected.",
    )
    barnabas_unpacked_record_max_bytes: int = option(
        "barnabas.unpacked.record.max.bytes",
        "int",
        default=16_777_216,
        at_least=1,
        dynamic="cluster",
        doc="Memory limit for decompression: the largest record of a compressed batch, "
        "unless message.max.bytes or four times the size of the batch is more.",
    )
    barnabas_zookeeper_credentials: Password | None = option(
        "barnabas.zookeeper.credentials",
        "password",
        default=None,
        doc="Credentials for ZooKeeper, as user:password (digest scheme).",
    )
    barnabas_zookeeper_ssl_crl_location: str | None = option(
        "barnabas.zookeeper.ssl.crl.location",
        "string",
        default=None,
        doc="File with certificate revocation lists (PEM) of all CAs trusted for ZooKeeper: "
        "revoked servers are not connected to.",
    )


def parse_metrics_address(value: str | None) -> MetricsAddress | None:
    """Return the address of `barnabas.metrics.listener`: `host:port`, `[host]:port` or `:port`."""
    if not value:
        return None
    host, colon, port = value.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    is_port = port.isascii() and port.isdigit() and int(port) <= 65_535
    if not colon or not is_port or (":" in bare and bare == host) or "/" in bare:
        raise ConfigError(
            f"barnabas.metrics.listener={value}: must be host:port, with a port from 0 to 65535"
        )
    return MetricsAddress(bare or LOOPBACK, int(port))
