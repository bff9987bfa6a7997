"""Properties of a tool's clients, by Kafka's names: from files, and from `name=value`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import UsageError
from barnabas.model.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.config.clients.options import ClientSection

SERIALIZERS = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer")
"""Properties that the tools set themselves: they send and read bytes."""

CONNECT_MS = "5000"
"""How long a tool looks for a first broker, unless bootstrap.timeout.ms says otherwise."""


def read_file(flag: str, path: str | None) -> dict[str, str]:
    """Return the properties of a file, none without one; raise ConfigError if it is unreadable."""
    if not path:
        return {}
    from barnabas.config.properties import read_properties

    try:
        text = Path(path).read_text("utf-8")
    except OSError as failure:
        raise ConfigError(f"{flag} {path}: {(failure.strerror or '').lower()}") from failure
    except UnicodeDecodeError as failure:
        raise ConfigError(f"{flag} {path}: not UTF-8") from failure
    return read_properties(text)


def assignments(flag: str, texts: Iterable[str]) -> dict[str, str]:
    """Return properties that were given as `name=value`; without `=`, the value is empty."""
    properties = {}
    for text in texts:
        name, _, value = text.partition("=")
        if not name:
            raise UsageError(f"Invalid command line properties: {text!r} of {flag} has no name")
        properties[name] = value
    return properties


def understood(
    tool: str, section: type[ClientSection], properties: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties that our client has; the others are named once, as Kafka does."""
    properties = {"bootstrap.timeout.ms": CONNECT_MS, **properties}
    from barnabas.config.clients.options import by_option, spellings

    known = spellings(section)
    unknown = sorted(name for name in properties if name not in known)
    if unknown:
        print(f"{tool}: no such client properties, ignored: {', '.join(unknown)}", file=sys.stderr)
    return by_option(
        section,
        {
            name: value
            for name, value in properties.items()
            if name in known and name not in SERIALIZERS
        },
    )


@contextmanager
def connecting(file: str | None, flag: str) -> Iterator[None]:
    """Add the next step to failures to reach the cluster; `file` is the one given with `flag`."""
    from barnabas.cli.next_step import explain_silence, with_next_step
    from barnabas.client.errors import NoBrokersAvailable

    with with_next_step(file, flag):
        try:
            yield
        except NoBrokersAvailable as failure:
            explain_silence(failure)
            raise
