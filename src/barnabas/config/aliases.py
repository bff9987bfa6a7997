"""Options that have several names for the same setting, and which name takes precedence.

The first name in a row that is set gives the value; the last one always has a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ALIASES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "log.dirs": ("log.dirs", "log.dir"),
        "log.roll.ms": ("log.roll.ms", "log.roll.hours"),
        "log.roll.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
        "log.retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
        "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    }
)


def aliases(name: str) -> tuple[str, ...]:
    """Return the names that can give the value of `name`, in order of precedence."""
    return ALIASES.get(name, (name,))


def to_ms(name: str) -> int:
    """Return the factor from the unit in an option's name to milliseconds; 1 for other options."""
    if name.endswith(".hours"):
        return 3_600_000
    if name.endswith(".minutes"):
        return 60_000
    return 1
