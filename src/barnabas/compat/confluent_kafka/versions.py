"""Versions, as programs ask for them before they use what is new."""

from __future__ import annotations

import barnabas

IMITATED = "2.16.1"
"""The version of confluent-kafka whose interface this is."""


def version() -> str:
    """Return the version of the interface."""
    return IMITATED


def libversion() -> tuple[str, int]:
    """Return the version of what is behind the interface: ours, and librdkafka's as a number."""
    return barnabas.__version__, 0x021000FF
