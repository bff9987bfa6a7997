"""Metrics and telemetry."""

from __future__ import annotations

from barnabas.config.option import Section, reserved


class ReportingOptions(Section):
    """Metrics and telemetry."""

    _without_effect = reserved(
        """
        metric.reporters                     list      []       cluster  METRICS    Classes that report metrics.
        metrics.num.samples                  int:1..   2        no       METRICS    Number of samples kept per metric.
        metrics.sample.window.ms             long:1..  30000    no       METRICS    Length of one sample.
        metrics.recording.level              string    INFO     no       METRICS    Recording level of metrics.
        auto.include.jmx.reporter            boolean   true     no       JAVA       Whether metrics are exposed through JMX.
        kafka.metrics.reporters              list      []       no       METRICS    Classes that report the older metrics.
        kafka.metrics.polling.interval.secs  int:1..   10       no       METRICS    How often these reporters run.
        telemetry.max.bytes                  int:1..   1048576  no       TELEMETRY  Maximum size of a client's telemetry push.
        """  # noqa: E501
    )
