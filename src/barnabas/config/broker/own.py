"""Options that Kafka does not have; their names begin with `barnabas.`."""

from __future__ import annotations

from barnabas.config.option import Password, Section, option


class OwnOptions(Section):
    """Options that Kafka does not have; their names begin with `barnabas.`."""

    barnabas_sendfile_min_bytes: int = option(
        "barnabas.sendfile.min.bytes",
        "int",
        default=65_536,
        at_least=0,
        doc="Fetch answers with at least this many bytes of records are sent without copying.",
    )
    barnabas_zookeeper_credentials: Password | None = option(
        "barnabas.zookeeper.credentials",
        "password",
        default=None,
        doc="With what this broker proves itself to ZooKeeper, as user:password (digest scheme).",
    )
