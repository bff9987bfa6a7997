"""The brokers of the cluster, exposed by its controller."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.monitoring.family import Family
from barnabas.metadata.cluster_view import BrokerView
from barnabas.metrics.catalogue import cluster as catalogue
from barnabas.metrics.metric import label_text


class BrokerSeries:
    """A collector that has nothing to say on the other brokers."""

    def __init__(self, controller: ControllerHost) -> None:
        self._controller = controller

    def collect(self) -> Iterator[Family]:
        """Yield the families; see `Collector`."""
        term = self._controller.term
        if term is None:
            return
        brokers = list(term.knowledge.brokers.values())
        yield catalogue.BROKERS, [("", len(brokers))]
        yield (
            catalogue.BROKER_INFO,
            [
                (label_text(catalogue.BROKER_INFO.labels, (str(each.broker_id), _address(each))), 1)
                for each in brokers
            ],
        )


def _address(view: BrokerView) -> str:
    """Return the address on the first listener; one without a host is reached by any name."""
    for host, port in view.endpoints.values():
        return f"{host or 'localhost'}:{port}"
    return ""
