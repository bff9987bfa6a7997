"""Options that Kafka does not have; their names begin with `barnabas.`."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option


class OwnOptions(Section):
    """Options that Kafka does not have; their names begin with `barnabas.`."""

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
