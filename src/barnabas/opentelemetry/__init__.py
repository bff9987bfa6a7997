"""Traces and metrics of our clients by OpenTelemetry; needs the extra `otel` (its API alone).

    from barnabas.opentelemetry import BarnabasInstrumentor

    BarnabasInstrumentor().instrument()      # before clients are created

`opentelemetry-instrument` finds and calls it by itself. Records carry their context in headers by
the W3C's convention, so that a trace goes on in any client that reads them.
"""

from barnabas.opentelemetry.instrumentor import BarnabasInstrumentor as BarnabasInstrumentor
from barnabas.opentelemetry.processing import processing as processing

__all__ = ["BarnabasInstrumentor", "processing"]
