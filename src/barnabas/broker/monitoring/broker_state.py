"""The states of a broker, with Kafka's numbers."""

from __future__ import annotations

from enum import IntEnum


class BrokerState(IntEnum):
    """What a broker is doing."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    """It loads its logs, and recovers them after an unclean stop."""
    RUNNING = 3
    PENDING_CONTROLLED_SHUTDOWN = 6
    """It hands its leaders over to other brokers."""
    SHUTTING_DOWN = 7
