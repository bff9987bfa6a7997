"""KRaft, which this broker does not run; its names are known, so they are no mistakes."""

from __future__ import annotations

from barnabas.config.option import Section, option
from barnabas.config.reasons import KRAFT


class KraftOptions(Section):
    """KRaft, which this broker does not run; its names are known, so they are no mistakes."""

    process_roles: tuple[str, ...] = option(
        "process.roles",
        "list",
        default=(),
        refused=KRAFT,
        doc="Roles of this process in a KRaft cluster.",
    )
    controller_listener_names: str | None = option(
        "controller.listener.names",
        "string",
        default=None,
        reserved=KRAFT,
        doc="Listeners of the controllers.",
    )
    metadata_max_retention_bytes: int = option(
        "metadata.max.retention.bytes",
        "long",
        default=104_857_600,
        reserved=KRAFT,
        doc="Size of the metadata log above which its oldest part goes.",
    )
    metadata_max_retention_ms: int = option(
        "metadata.max.retention.ms",
        "long",
        default=604_800_000,
        reserved=KRAFT,
        doc="How long the metadata log is kept.",
    )
    metadata_max_idle_interval_ms: int = option(
        "metadata.max.idle.interval.ms",
        "int",
        default=500,
        at_least=0,
        reserved=KRAFT,
        doc="How often the idle controller writes to the metadata log.",
    )
    broker_heartbeat_interval_ms: int = option(
        "broker.heartbeat.interval.ms",
        "int",
        default=2_000,
        reserved=KRAFT,
        doc="How often a broker sends its heartbeat to the controller.",
    )
    broker_session_timeout_ms: int = option(
        "broker.session.timeout.ms",
        "int",
        default=9_000,
        reserved=KRAFT,
        doc="Silence after which the controller fences a broker.",
    )
    initial_broker_registration_timeout_ms: int = option(
        "initial.broker.registration.timeout.ms",
        "int",
        default=60_000,
        reserved=KRAFT,
        doc="Longest wait for the first registration.",
    )
