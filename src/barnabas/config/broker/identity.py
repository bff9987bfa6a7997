"""Identity and data directories of a broker."""

from __future__ import annotations

from barnabas.config.option import Section, option
from barnabas.config.reasons import NEGOTIATED


class IdentityOptions(Section):
    """Identity and data directories of a broker."""

    broker_id: int = option(
        "broker.id",
        "int",
        default=-1,
        at_least=-1,
        doc="Id of this broker in the cluster; -1 generates one.",
    )
    node_id: int = option(
        "node.id",
        "int",
        default=-1,
        at_least=-1,
        doc="Alias of broker.id; if both are set, they must be equal.",
    )
    broker_id_generation_enable: bool = option(
        "broker.id.generation.enable",
        "boolean",
        default=True,
        doc="Whether a broker id is generated if none is set.",
    )
    reserved_broker_max_id: int = option(
        "reserved.broker.max.id",
        "int",
        default=1_000,
        at_least=0,
        doc="Highest id that may be configured; generated ids start above it.",
    )
    broker_rack: str | None = option(
        "broker.rack",
        "string",
        default=None,
        doc="Rack of this broker, for spreading replicas and reading from the closest one.",
    )
    log_dirs: str | None = option(
        "log.dirs",
        "string",
        default=None,
        doc="Data directories, separated by commas.",
    )
    log_dir: str = option(
        "log.dir",
        "string",
        default="/tmp/kafka-logs",
        doc="The data directory if log.dirs is not set.",
    )
    inter_broker_protocol_version: str = option(
        "inter.broker.protocol.version",
        "string",
        default="3.9-IV0",
        reserved=NEGOTIATED,
        doc="Protocol version used between brokers.",
    )
