"""Metrics and telemetry."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved


class ReportingOptions(Section):
    """Metrics and telemetry."""

    telemetry_max_bytes: int = option(
        "telemetry.max.bytes",
        "int",
        default=1_048_576,
        at_least=1,
        doc="Maximum size of a client's telemetry push, compressed as it arrives.",
    )
    _without_effect = reserved(
        """
        metric.reporters                     list      []       cluster  METRICS    Classes that report metrics.
        metrics.num.samples                  int:1..   2        no       METRICS    Number of samples kept per metric.
        metrics.sample.window.ms             long:1..  30000    no       METRICS    Length of one sample.
        metrics.recording.level              string    INFO     no       METRICS    Recording level of metrics.
        auto.include.jmx.reporter            boolean   true     no       JAVA       Whether metrics are exposed through JMX.
        kafka.metrics.reporters              list      []       no       METRICS    Classes that report the older metrics.
        kafka.metrics.polling.interval.secs  int:1..   10       no       METRICS    How often these reporters run.
        """  # noqa: E501
    )
