"""Gauges of the controller; on other brokers all but the epoch are 0."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.cluster.controller_commands import ControllerCommands
from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.monitoring.partition_series import Family
from barnabas.controller.term import Term
from barnabas.controller.totals import ClusterTotals, count_cluster
from barnabas.metrics.catalogue import controller as catalogue
from barnabas.metrics.metric import label_text
from barnabas.metrics.registry import Registry


class ControllerGauges:
    """Gauges over the state of the controller, which changes with its events only."""

    def __init__(
        self, registry: Registry, controller: ControllerHost, control: ControllerCommands
    ) -> None:
        self._controller = controller
        self._counted: tuple[Term, int, ClusterTotals] | None = None
        registry.gauge(catalogue.ACTIVE, lambda: 0 if controller.term is None else 1)
        registry.gauge(catalogue.STATE, lambda: self._state())
        registry.gauge(catalogue.EPOCH, lambda: control.controller_epoch)
        registry.gauge(catalogue.OFFLINE_PARTITIONS, lambda: self.totals.offline)
        registry.gauge(catalogue.TOPICS, lambda: self.totals.topics)
        registry.gauge(catalogue.PARTITIONS, lambda: self.totals.partitions)
        registry.gauge(catalogue.NOT_PREFERRED, lambda: self.totals.not_preferred)
        registry.gauge(catalogue.TOPICS_TO_DELETE, lambda: self.totals.topics_to_delete)
        registry.gauge(catalogue.REPLICAS_TO_DELETE, lambda: self.totals.replicas_to_delete)
        registry.gauge(catalogue.TOPICS_INELIGIBLE, lambda: self.totals.topics_ineligible)
        registry.gauge(catalogue.REPLICAS_INELIGIBLE, lambda: self.totals.replicas_ineligible)
        registry.gauge(catalogue.ACTIVE_BROKERS, lambda: self.totals.brokers)
        registry.gauge(catalogue.FENCED_BROKERS, lambda: 0)
        registry.gauge(catalogue.EVENT_QUEUE_SIZE, lambda: controller.events_waiting)
        registry.gauge(
            catalogue.TOTAL_QUEUE_SIZE, lambda: sum(controller.requests_waiting.values())
        )
        registry.add_collector(self)

    @property
    def totals(self) -> ClusterTotals:
        """Return the numbers after the last event; zeros unless this is the controller."""
        term, events = self._controller.term, self._controller.metrics.events
        if term is None:
            self._counted = None
            return ClusterTotals()
        known = self._counted
        if known is None or known[0] is not term or known[1] != events:
            known = self._counted = term, events, count_cluster(term.knowledge)
        return known[2]

    def collect(self) -> Iterator[Family]:
        """Yield the families; see `Collector`."""
        waiting = self._controller.requests_waiting
        if waiting:
            yield (
                catalogue.QUEUE_SIZE,
                [
                    (label_text(("broker_id",), (str(broker),)), count)
                    for broker, count in waiting.items()
                ],
            )

    def _state(self) -> int:
        term = self._controller.term
        return 0 if term is None else int(term.state)
