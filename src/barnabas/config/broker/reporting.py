"""Metrics and telemetry."""

from __future__ import annotations

from barnabas.config.option import Section, reserved


class ReportingOptions(Section):
    """Metrics and telemetry."""

    _without_effect = reserved(
        """
        metric.reporters                     list      []       cluster  METRICS    Classes that report metrics.
        metrics.num.samples                  int:1..   2        no       METRICS    Samples that a metric looks back on.
        metrics.sample.window.ms             long:1..  30000    no       METRICS    Length of one such sample.
        metrics.recording.level              string    INFO     no       METRICS    Detail in which metrics are recorded.
        auto.include.jmx.reporter            boolean   true     no       JAVA       Whether metrics appear in JMX.
        kafka.metrics.reporters              list      []       no       METRICS    Classes that report the older metrics.
        kafka.metrics.polling.interval.secs  int:1..   10       no       METRICS    How often these classes are asked to report.
        telemetry.max.bytes                  int:1..   1048576  no       TELEMETRY  Largest telemetry push of a client.
        """  # noqa: E501
    )
