"""Where the value of an option comes from: layers of values, and how DescribeConfigs shows them.

A broker's value is the first of: its own dynamic value, the cluster's dynamic value, the value in
its file, the default. A topic's value is its override, or else that of the broker option that it
falls back to:

    TOPIC → DYNAMIC_BROKER → DYNAMIC_DEFAULT_BROKER → STATIC_BROKER → DEFAULT

`BrokerSources` is immutable; a dynamic change creates a new one with the new `options`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import IntEnum
from itertools import dropwhile
from types import MappingProxyType
from typing import NamedTuple

from barnabas.config.aliases import aliases
from barnabas.config.broker import BrokerOptions
from barnabas.config.client_metrics import ClientMetricsOptions
from barnabas.config.option import Kind, Option
from barnabas.config.topic import TopicOptions


class Source(IntEnum):
    """Where a value comes from; the numbers are those of DescribeConfigs."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    """One source that gives, or would give, the value; the value of a secret is None."""

    name: str
    value: str | None
    source: Source


class Described(NamedTuple):
    """One option as DescribeConfigs shows it; the first of `synonyms` is the one that won."""

    name: str
    value: str | None
    source: Source
    kind: Kind
    read_only: bool
    sensitive: bool
    synonyms: tuple[Synonym, ...]
    doc: str


def describe_client_metrics(
    values: Mapping[str, str], names: Iterable[str] | None = None
) -> list[Described]:
    """Describe the options of a client-metrics resource; one without options does not exist."""
    described = []
    for name, option in _chosen(names, ClientMetricsOptions.options, ClientMetricsOptions.find):
        text = option.text(option.default)
        synonyms = [Synonym(name, text, Source.DEFAULT)]
        if name in values:
            text = values[name]
            synonyms.insert(0, Synonym(name, text, Source.CLIENT_METRICS))
        described.append(_entry(name, option, text, tuple(synonyms)))
    return described if values else []


class BrokerSources:
    """The layers of a broker's options, and the resulting options."""

    __slots__ = ("_file", "broker", "cluster", "options", "static")

    def __init__(
        self,
        static: Mapping[str, object],
        cluster: Mapping[str, str] = MappingProxyType({}),
        broker: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Layer the values of the file, the cluster's dynamic ones and this broker's dynamic ones.

        Raise ConfigError for an invalid value. `static` may also have typed values.
        """
        self._file = dict(static)
        parsed = BrokerOptions.parse(static)
        self.static: Mapping[str, str] = parsed.given
        self.cluster: Mapping[str, str] = MappingProxyType(dict(cluster))
        self.broker: Mapping[str, str] = MappingProxyType(dict(broker))
        dynamic = {**cluster, **broker}
        self.options = parsed.with_overrides(dynamic) if dynamic else parsed

    def with_cluster(self, values: Mapping[str, str]) -> BrokerSources:
        """Return the layers with the cluster's dynamic values replaced by these."""
        return BrokerSources(self._file, values, self.broker)

    def with_broker(self, values: Mapping[str, str]) -> BrokerSources:
        """Return the layers with this broker's dynamic values replaced by these."""
        return BrokerSources(self._file, self.cluster, values)

    def describe(self, names: Iterable[str] | None = None) -> list[Described]:
        """Describe this broker's options: all, or those of `names` that exist."""
        return [
            self._described(name, option)
            for name, option in _chosen(names, self._known(), BrokerOptions.find)
        ]

    def describe_cluster(self, names: Iterable[str] | None = None) -> list[Described]:
        """Describe only the cluster's dynamic values, as those of the broker with an empty name."""
        described = []
        for name, option in _chosen(names, self.cluster, BrokerOptions.find):
            if name in self.cluster:
                text = None if option.sensitive else self.cluster[name]
                synonym = Synonym(name, text, Source.DYNAMIC_DEFAULT_BROKER)
                described.append(_entry(name, option, text, (synonym,)))
        return described

    def describe_topic(
        self, overrides: Mapping[str, str], names: Iterable[str] | None = None
    ) -> list[Described]:
        """Describe the options of a topic with these overrides: all, or those of `names`."""
        resolved = TopicOptions.resolve(self.options, overrides)
        described = []
        for name, option in _chosen(names, TopicOptions.options, TopicOptions.find):
            text = option.text(resolved.value(name))
            synonyms: list[Synonym] = []
            if name in overrides:
                synonyms.append(Synonym(name, text, Source.TOPIC))
            if option.synonym is not None:
                synonyms += self._synonyms(aliases(option.synonym), option)
            else:
                synonyms.append(Synonym(name, option.text(option.default), Source.DEFAULT))
            described.append(_entry(name, option, text, tuple(synonyms)))
        return described

    def _known(self) -> dict[str, None]:
        """Return the names of all options, and those set for one listener."""
        return dict.fromkeys([*BrokerOptions.options, *self.options.given])

    def _described(self, name: str, option: Option) -> Described:
        if name == option.name:
            synonyms = self._synonyms(aliases(name), option)
            text = option.text(self.options.value(name))
            # Aliases of lower precedence are only described with one of higher precedence.
            weaker = dropwhile(lambda synonym: synonym.name != name, synonyms)
            return _entry(name, option, text, tuple(weaker))
        # Set for one listener: it overrides the option without the prefix.
        synonyms = self._synonyms((name, option.name), option)
        return _entry(name, option, synonyms[0].value if synonyms else None, synonyms)

    def _synonyms(self, names: tuple[str, ...], option: Option) -> tuple[Synonym, ...]:
        layers = (
            (self.broker, Source.DYNAMIC_BROKER),
            (self.cluster, Source.DYNAMIC_DEFAULT_BROKER),
            (self.static, Source.STATIC_BROKER),
        )
        synonyms = [
            Synonym(name, None if option.sensitive else values[name], source)
            for values, source in layers
            for name in names
            if name in values
        ]
        for name in names:
            declared = BrokerOptions.options.get(name)
            if declared is not None and declared.default is not None:
                text = declared.text(declared.default)
                synonyms.append(Synonym(name, text, Source.DEFAULT))
        return tuple(synonyms)


def _entry(name: str, option: Option, text: str | None, synonyms: tuple[Synonym, ...]) -> Described:
    return Described(
        name=name,
        value=text,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        kind=option.kind,
        read_only=option.dynamic == "no",
        sensitive=option.sensitive,
        synonyms=synonyms,
        doc=option.doc,
    )


def _chosen(
    names: Iterable[str] | None,
    known: Iterable[str],
    find: Callable[[str], Option | None],
) -> Iterator[tuple[str, Option]]:
    """Yield those of the requested names (or of all known ones) that are options."""
    for name in known if names is None else names:
        option = find(name)
        if option is not None:
            yield name, option
