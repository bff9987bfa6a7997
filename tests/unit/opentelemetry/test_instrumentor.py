"""Switching on and off; and that nothing is traced, or imported, unless it is switched on."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from tests.unit.opentelemetry.conftest import Traced

from barnabas import KafkaConsumer, KafkaProducer
from barnabas.client import tracing
from barnabas.opentelemetry import BarnabasInstrumentor, processing


def test_there_is_one_and_it_is_switched_on_once(
    traced: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    instrumentor = BarnabasInstrumentor()
    assert instrumentor is BarnabasInstrumentor()
    assert not instrumentor.is_instrumented_by_opentelemetry
    assert tracing.installed() is None
    instrumentor.instrument(tracer_provider=traced.provider, skip_dep_check=True)
    assert instrumentor.is_instrumented_by_opentelemetry
    first = tracing.installed()
    instrumentor.instrument()
    assert "instrumented already" in caplog.text
    assert tracing.installed() is first is not None
    instrumentor.uninstrument()
    assert tracing.installed() is None
    instrumentor.uninstrument()
    assert instrumentor.instrumentation_dependencies() == ()


def test_clients_that_exist_are_no_longer_traced_once_it_is_off(
    traced_bootstrap: str, topic: str, traced: Traced
) -> None:
    traced.instrument()
    with (
        KafkaProducer(bootstrap_servers=traced_bootstrap) as producer,
        KafkaConsumer(
            topic, bootstrap_servers=traced_bootstrap, auto_offset_reset="earliest"
        ) as consumer,
    ):
        producer.send(topic, b"1").get(30)
        BarnabasInstrumentor().uninstrument()
        producer.send(topic, b"2").get(30)
        producer.send_many(topic, [b"3"]).get(30)
        records = iter(consumer)
        found = sorted((next(records) for _ in range(3)), key=lambda each: each.value)
        assert [len(each.headers) for each in found] == [1, 0, 0]
        with processing(found[0]) as span:
            assert span is None
    assert len(traced.spans()) == 1


def test_clients_that_were_made_before_are_not_traced(
    traced_bootstrap: str, topic: str, traced: Traced
) -> None:
    with KafkaProducer(bootstrap_servers=traced_bootstrap) as producer:
        traced.instrument()
        assert producer._direct is not None, "records go straight to the accumulator"
        producer.send(topic, b"1").get(30)
    assert traced.spans() == []


@pytest.mark.parametrize("module", ["barnabas", "barnabas.aio"])
def test_clients_import_nothing_of_it(module: str) -> None:
    program = (
        f"import sys, {module} as m; m.{'AIO' if module.endswith('aio') else ''}KafkaProducer; "
        "print([each for each in sys.modules if 'opentelemetry' in each])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("[]\n", 0), ran.stderr


def test_only_the_api_is_imported() -> None:
    program = (
        "import sys, barnabas.opentelemetry; print(sorted({'.'.join(each.split('.')[:2]) for each "
        "in sys.modules if each.startswith(('opentelemetry.sdk', 'opentelemetry.instrumentation', "
        "'opentelemetry.semconv'))}))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ran.stdout, ran.returncode) == ("[]\n", 0), ran.stderr
