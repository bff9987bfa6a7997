"""Options that Kafka does not have; their names begin with `barnabas.`."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option


class OwnOptions(Section):
    """Options that Kafka does not have; their names begin with `barnabas.`."""

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
    barnabas_initial_users_dir: str | None = option(
        "barnabas.initial.users.dir",
        "string",
        default=None,
        doc="Directory with a file per SCRAM user, as `barnabas security init` writes them. A "
        "broker adds these users and their ACLs to its cluster, each only once.",
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
