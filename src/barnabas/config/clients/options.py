"""Options of a client, as a program gives them: `linger_ms=5` or `{"linger.ms": "5"}`.

    class ProducerOptions(CommonOptions):
        linger_ms: int = option("linger.ms", "int", default=0, at_least=0, doc="…")

    options = parse_client_options(ProducerOptions, {"linger_ms": 5, "batch.size": "32768"})

Names are Kafka's, or the same in snake case; values are Python objects or strings; None means
unset. A section may list more names for its options in `other_names`: those of kafka-python,
aiokafka and librdkafka, if they differ. An unknown name is an error here, not a warning: otherwise,
a misspelt client option would only be noticed in production.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, TypeVar

from barnabas.config.option import Section, attribute_name, suggest
from barnabas.model.errors import ConfigError

log = logging.getLogger(__name__)

ClientSectionType = TypeVar("ClientSectionType", bound="ClientSection")
Value = TypeVar("Value")


class ClientSection(Section):
    """A section whose options have several names."""

    other_names: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """More dotted names, and the options that they mean."""


def parse_client_options(
    section: type[ClientSectionType], given: Mapping[str, object]
) -> ClientSectionType:
    """Return the section with the given values; raise ConfigError for a wrong name or value.

    Options that are accepted to no effect are logged by name, with the reason.
    """
    known = spellings(section)
    for name in given:
        if name not in known:  # the value is not shown: it may be a secret under a misspelt name
            raise ConfigError(f"{name}: no such option{suggest(name, known)}")
    # None is how kafka-python leaves an option unset.
    values = by_option(section, {name: value for name, value in given.items() if value is not None})
    options = section.parse(values)
    for warning in options.warnings():
        log.warning("%s", warning)
    return options


def by_option(section: type[ClientSection], given: Mapping[str, Value]) -> dict[str, Value]:
    """Return values by the options that their names mean; unknown names stay as they are."""
    known = spellings(section)
    values: dict[str, Value] = {}
    spelled: dict[str, str] = {}
    for name, value in given.items():
        option = known.get(name, name)
        if option in values and values[option] != value:
            raise ConfigError(f"{spelled[option]} and {name} give different values for {option}")
        values[option] = value
        spelled[option] = name
    return values


def spellings(section: type[ClientSection]) -> dict[str, str]:
    """Return the option that each accepted name means."""
    dotted = {name: name for name in section.options}
    for parent in reversed(section.__mro__):
        if issubclass(parent, ClientSection):
            dotted.update(parent.other_names)
    return {attribute_name(name): option for name, option in dotted.items()} | dotted
