"""Options that Kafka does not have; their names begin with `barnabas.`."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option


class OwnOptions(Section):
    """Options that Kafka does not have; their names begin with `barnabas.`."""

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
