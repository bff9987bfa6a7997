"""KRaft, which this broker does not run; its option names are recognised all the same."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved
from barnabas.config.reasons import KRAFT


class KraftOptions(Section):
    """KRaft, which this broker does not run; its option names are recognised all the same."""

    process_roles: tuple[str, ...] = option(
        "process.roles",
        "list",
        default=(),
        refused=KRAFT,
        doc="Roles of this process in a KRaft cluster.",
    )
    _without_effect = reserved(
        """
        controller.listener.names               string   -          no  KRAFT  Listeners of the controllers.
        metadata.max.retention.bytes            long     104857600  no  KRAFT  Metadata log size above which its oldest segments are deleted.
        metadata.max.retention.ms               long     604800000  no  KRAFT  How long the metadata log is kept.
        metadata.max.idle.interval.ms           int:0..  500        no  KRAFT  How often an idle controller writes a no-op to the metadata log.
        broker.heartbeat.interval.ms            int      2000       no  KRAFT  How often a broker sends its heartbeat to the controller.
        broker.session.timeout.ms               int      9000       no  KRAFT  Time without a heartbeat after which the controller fences a broker.
        initial.broker.registration.timeout.ms  int      60000      no  KRAFT  Maximum wait for the first registration.
        """  # noqa: E501
    )
