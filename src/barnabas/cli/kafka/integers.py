"""Whole numbers as Kafka's tools read them."""

from __future__ import annotations

import re


def whole_number(text: str) -> int:
    """Parse a signed number of 64 bits."""
    if not re.fullmatch(r"[-+]?\d{1,19}", text, re.ASCII) or not -(1 << 63) <= int(text) < 1 << 63:
        raise ValueError("it is not a whole number")
    return int(text)
