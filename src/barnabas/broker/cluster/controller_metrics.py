"""What the host of the controller measures: events by state, and how long they waited."""

from __future__ import annotations

from barnabas.controller.counts import ControllerCounts
from barnabas.controller.states import ControllerState
from barnabas.metrics.catalogue import controller as catalogue
from barnabas.metrics.metric import Metric
from barnabas.metrics.registry import Registry

TIMES: dict[ControllerState, Metric] = {
    ControllerState.CONTROLLER_CHANGE: catalogue.CONTROLLER_CHANGE_TIME,
    # Kafka's name for it is older than the states.
    ControllerState.BROKER_CHANGE: catalogue.LEADER_ELECTION_TIME,
    ControllerState.TOPIC_CHANGE: catalogue.TOPIC_CHANGE_TIME,
    ControllerState.TOPIC_DELETION: catalogue.TOPIC_DELETION_TIME,
    ControllerState.REASSIGNMENT: catalogue.REASSIGNMENT_TIME,
    ControllerState.AUTO_LEADER_BALANCE: catalogue.AUTO_BALANCE_TIME,
    ControllerState.MANUAL_LEADER_BALANCE: catalogue.MANUAL_BALANCE_TIME,
    ControllerState.CONTROLLED_SHUTDOWN: catalogue.SHUTDOWN_TIME,
    ControllerState.ISR_CHANGE: catalogue.ISR_CHANGE_TIME,
    ControllerState.RESPONSE_RECEIVED: catalogue.RESPONSE_TIME,
    ControllerState.LOG_DIR_CHANGE: catalogue.DISK_TIME,
    ControllerState.UNCLEAN_ELECTION_ENABLE: catalogue.UNCLEAN_ENABLE_TIME,
}


class ControllerMetrics:
    """The instruments, over all terms of one broker."""

    def __init__(self, registry: Registry) -> None:
        self.counts = ControllerCounts(registry)
        self.waits = registry.histogram(catalogue.EVENT_QUEUE_TIME)
        self.events = 0
        """How many events were handled: what is computed from the controller's state holds until
        the next one."""
        self._times = {state: registry.histogram(metric) for state, metric in TIMES.items()}

    def handled(self, state: ControllerState, seconds: float) -> None:
        """Record an event; one that only reads the state has no time of its own."""
        self.events += 1
        times = self._times.get(state)
        if times is not None:
            times.record(int(seconds * 1e6))
