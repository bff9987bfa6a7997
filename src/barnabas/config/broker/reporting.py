"""Metrics and telemetry."""

from __future__ import annotations

from barnabas.config.option import Section, option
from barnabas.config.reasons import JAVA, METRICS


class ReportingOptions(Section):
    """Metrics and telemetry."""

    metric_reporters: tuple[str, ...] = option(
        "metric.reporters",
        "list",
        default=(),
        dynamic="cluster",
        reserved=METRICS,
        doc="Classes that report metrics.",
    )
    metrics_num_samples: int = option(
        "metrics.num.samples",
        "int",
        default=2,
        at_least=1,
        reserved=METRICS,
        doc="Samples that a metric looks back on.",
    )
    metrics_sample_window_ms: int = option(
        "metrics.sample.window.ms",
        "long",
        default=30_000,
        at_least=1,
        reserved=METRICS,
        doc="Length of one such sample.",
    )
    metrics_recording_level: str = option(
        "metrics.recording.level",
        "string",
        default="INFO",
        reserved=METRICS,
        doc="Detail in which metrics are recorded.",
    )
    auto_include_jmx_reporter: bool = option(
        "auto.include.jmx.reporter",
        "boolean",
        default=True,
        reserved=JAVA,
        doc="Whether metrics appear in JMX.",
    )
    kafka_metrics_reporters: tuple[str, ...] = option(
        "kafka.metrics.reporters",
        "list",
        default=(),
        reserved=METRICS,
        doc="Classes that report the older metrics.",
    )
    kafka_metrics_polling_interval_secs: int = option(
        "kafka.metrics.polling.interval.secs",
        "int",
        default=10,
        at_least=1,
        reserved=METRICS,
        doc="How often these classes are asked to report.",
    )
    telemetry_max_bytes: int = option(
        "telemetry.max.bytes",
        "int",
        default=1_048_576,
        at_least=1,
        reserved="arrives with client telemetry",
        doc="Largest telemetry push of a client.",
    )
