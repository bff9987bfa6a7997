"""Errors of pipelines."""

from __future__ import annotations

from barnabas.model.errors import BarnabasError


class PipelineError(BarnabasError):
    """A pipeline that cannot run, or that ended with a failure."""


class NeedsSparkError(BarnabasError):
    """Something that only a running Spark can determine."""
