"""Options by Kafka's names, as each client wants them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OTHER_NAMES = {
    "aiokafka": {"batch.size": "max_batch_size"},
    "kafka-python": {},
}


def in_snake_case(client: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return options as keywords with Python's values, for kafka-python and aiokafka."""
    other = _OTHER_NAMES[client]
    named = {}
    for name, value in options.items():
        keyword = other.get(name, name.replace(".", "_"))
        named[keyword] = _value(keyword, value)
    return named


def _value(keyword: str, text: str) -> Any:
    if keyword == "acks":
        return "all" if text in ("-1", "all") else int(text)
    if keyword == "compression_type" and text == "none":
        return None
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text
