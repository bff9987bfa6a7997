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


def producers_and_consumers(
    options: Mapping[str, str],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the options of a producer and those of a consumer, of which some are for both.

    Ours say whose an option is; options that neither has are another client's, for both.
    """
    from barnabas.config.clients.consumer import ConsumerOptions
    from barnabas.config.clients.options import spellings
    from barnabas.config.clients.producer import ProducerOptions

    sending, reading = spellings(ProducerOptions), spellings(ConsumerOptions)
    return (
        {name: value for name, value in options.items() if name in sending or name not in reading},
        {name: value for name, value in options.items() if name in reading or name not in sending},
    )
