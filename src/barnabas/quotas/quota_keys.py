"""The names of quotas in the tree and on the wire, and their values."""

from __future__ import annotations

from math import isfinite

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

CLIENT_KEYS = (
    PRODUCER_BYTE_RATE,
    CONSUMER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    CONTROLLER_MUTATION_RATE,
)
"""Quotas of users and client ids."""
IP_KEYS = (CONNECTION_CREATION_RATE,)
"""Quotas of addresses."""

WHOLE = frozenset([PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, CONNECTION_CREATION_RATE])
"""Quotas that are whole numbers."""


def parse_limit(key: str, text: str | None) -> float | None:
    """Return the limit that the tree has for a quota; None if there is none, or it is invalid."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if check_limit(key, value) is None else None


def check_limit(key: str, value: float) -> str | None:
    """Return what is wrong with a limit; None if nothing is."""
    if not isfinite(value) or value <= 0:
        return f"{key}={value:g}: must be above 0"
    if key in WHOLE and value != int(value):
        return f"{key}={value:g}: must be a whole number"
    return None


def limit_text(key: str, value: float) -> str:
    """Return a limit as the tree has it."""
    return str(int(value)) if key in WHOLE else str(float(value))
