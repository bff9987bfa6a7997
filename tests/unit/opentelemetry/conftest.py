"""A broker, and what was traced, in memory; without OpenTelemetry's packages nothing is tested."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.testing import Cluster

OPTIONS = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="session")
def traced_bootstrap() -> Iterator[str]:
    with Cluster(options=OPTIONS) as cluster:
        yield cluster.bootstrap


@pytest.fixture
def topic() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


class Traced:
    """What was traced and measured, and how to switch it on."""

    def __init__(self) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.provider.get_tracer("test")
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)

    def instrument(self, **options: Any) -> None:
        from barnabas.opentelemetry import BarnabasInstrumentor

        BarnabasInstrumentor().instrument(tracer_provider=self.provider, **options)

    def spans(self, name: str | None = None) -> list[Any]:
        """The spans that have ended."""
        found = self._exporter.get_finished_spans()
        return [each for each in found if name is None or each.name == name]

    def span(self, name: str) -> Any:
        """The one span of a name."""
        (found,) = self.spans(name)
        return found

    def measured(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Attributes and value, or count, of a metric's points."""
        data = self._reader.get_metrics_data()
        return [
            (dict(point.attributes), getattr(point, "count", None) or point.value)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def close(self) -> None:
        from barnabas.opentelemetry import BarnabasInstrumentor

        BarnabasInstrumentor().uninstrument()
        self.provider.shutdown()
        self.meters.shutdown()


@pytest.fixture
def traced() -> Iterator[Traced]:
    made = Traced()
    yield made
    made.close()


@pytest.fixture
def opt_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Choose the names of spans and attributes."""
    return lambda text: monkeypatch.setenv("OTEL_SEMCONV_STABILITY_OPT_IN", text)
