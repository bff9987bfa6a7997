"""The span of what a program does with a record.

for record in consumer:
    with processing(record):
        handle(record)              # its spans are children of `process orders`
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import context
from opentelemetry.trace import Span, set_span_in_context

from barnabas.opentelemetry.conventions import Attributes, error_type, set_failure
from barnabas.opentelemetry.instrumentor import BarnabasInstrumentor
from barnabas.opentelemetry.propagation import current_with, extracted


@contextmanager
def processing(record: Any) -> Iterator[Span | None]:
    """Make a span for a record current while the context lasts; None if nothing is instrumented.

    It is a child of the span that sent the record, and ends with an error if the context does.
    """
    settings = BarnabasInstrumentor()._settings
    if settings is None or not settings.active:
        yield None
        return
    conventions = settings.conventions
    attributes: Attributes = {
        "messaging.system": "kafka",
        **conventions.operation("process"),
        **conventions.record(record),
    }
    began_ns = time.perf_counter_ns()
    parent = current_with(extracted(record.headers))
    span: Span = settings.tracer.start_span(
        conventions.span_name("process", (record.topic,)),
        context=parent,
        kind=conventions.kind("process"),
        attributes=attributes,
    )
    token = context.attach(set_span_in_context(span, parent))
    try:
        yield span
    except BaseException as failure:
        attributes["error.type"] = error_type(failure)
        set_failure(span, failure)
        raise
    finally:
        context.detach(token)
        span.end()
        if settings.measures is not None:
            settings.measures.processed((time.perf_counter_ns() - began_ns) / 1e9, attributes)
