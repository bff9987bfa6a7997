"""Gauges of the controller; on other brokers all but the epoch are 0."""

from __future__ import annotations

from collections.abc import Generator, Iterator

from barnabas.broker.cluster.controller_commands import ControllerCommands
from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.monitoring.family import Family
from barnabas.controller.term import Term
from barnabas.controller.totals import ClusterTotals, count_cluster
from barnabas.metrics.catalogue import controller as catalogue
from barnabas.metrics.metric import label_text


class ControllerGauges:
    """A collector; what it counts changes only with the controller's events, and is kept."""

    def __init__(self, controller: ControllerHost, control: ControllerCommands) -> None:
        self._controller = controller
        self._control = control
        self._counted: tuple[Term, int, ClusterTotals] | None = None

    def collect(self) -> Iterator[Family | None]:
        """Yield the families; see `Collector`."""
        controller = self._controller
        term = controller.term
        totals = yield from self._totals(term)
        yield catalogue.ACTIVE, [("", 0 if term is None else 1)]
        yield catalogue.STATE, [("", 0 if term is None else int(term.state))]
        yield catalogue.EPOCH, [("", self._control.controller_epoch)]
        yield catalogue.OFFLINE_PARTITIONS, [("", totals.offline)]
        yield catalogue.TOPICS, [("", totals.topics)]
        yield catalogue.PARTITIONS, [("", totals.partitions)]
        yield catalogue.NOT_PREFERRED, [("", totals.not_preferred)]
        yield catalogue.TOPICS_TO_DELETE, [("", totals.topics_to_delete)]
        yield catalogue.REPLICAS_TO_DELETE, [("", totals.replicas_to_delete)]
        yield catalogue.TOPICS_INELIGIBLE, [("", totals.topics_ineligible)]
        yield catalogue.REPLICAS_INELIGIBLE, [("", totals.replicas_ineligible)]
        yield catalogue.ACTIVE_BROKERS, [("", totals.brokers)]
        yield catalogue.FENCED_BROKERS, [("", 0)]
        yield catalogue.EVENT_QUEUE_SIZE, [("", controller.events_waiting)]
        waiting = controller.requests_waiting
        yield catalogue.TOTAL_QUEUE_SIZE, [("", sum(waiting.values()))]
        yield (
            catalogue.QUEUE_SIZE,
            [
                (label_text(("broker_id",), (str(broker),)), count)
                for broker, count in waiting.items()
            ],
        )

    def _totals(self, term: Term | None) -> Generator[None, None, ClusterTotals]:
        """Return the numbers after the last event; zeros unless this is the controller."""
        if term is None:
            self._counted = None
            return ClusterTotals()
        events, known = self._controller.metrics.events, self._counted
        if known is None or known[0] is not term or known[1] != events:
            known = term, events, (yield from count_cluster(term.knowledge))
            self._counted = known
        return known[2]
