"""Which partitions a query reads: `subscribe`, `subscribePattern` or `assign`.

A pattern need only match a part of a topic's name, as it does for Spark's connector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.model.errors import ConfigError, InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.spark.places import parse_assignment

WAYS = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class TopicNow:
    """A topic as the cluster has it now."""

    topic_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the three ways, with its text for messages."""

    text: str
    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    assigned: tuple[TopicPartition, ...] = ()

    @property
    def names(self) -> tuple[str, ...] | None:
        """The topics to ask the cluster about; None: all."""
        if self.pattern is not None:
            return None
        return self.topics or tuple(dict.fromkeys(place.topic for place in self.assigned))

    def covers(self, topic: str) -> bool:
        """Tell whether a topic of this name would be read."""
        if self.pattern is not None:
            return self.pattern.search(topic) is not None
        return topic in (self.names or ())

    def partitions(self, topics: Mapping[str, TopicNow]) -> list[TopicPartition]:
        """Return the partitions to read, of the topics that there are."""
        if self.assigned:
            return [
                place
                for place in self.assigned
                if place.topic in topics and place.partition in topics[place.topic].partitions
            ]
        return [
            TopicPartition(name, number)
            for name in sorted(topics)
            if self.covers(name)
            for number in topics[name].partitions
        ]

    def check(self, topics: Mapping[str, TopicNow]) -> None:
        """Raise if something that is named does not exist, or if nothing matches."""
        for name in self.names or ():
            if name not in topics:
                raise InvalidValueError(f"{self.text}: topic {name} does not exist")
        for place in self.assigned:
            if place.partition not in topics[place.topic].partitions:
                count = len(topics[place.topic].partitions)
                raise InvalidValueError(
                    f"{self.text}: partition {place} does not exist; {place.topic} has {count}"
                )


def parse_choice(given: Mapping[str, str]) -> Choice:
    """Read the one of the three options that is given, from lower-case names."""
    chosen = [way for way in WAYS if way.lower() in given]
    if len(chosen) != 1:
        what = "none is given" if not chosen else f"{' and '.join(chosen)} are given"
        raise ConfigError(f"one of {', '.join(WAYS)} says what to read: {what}")
    way = chosen[0]
    text = given[way.lower()]
    shown = f"{way}={text}"
    if way == "assign":
        return Choice(shown, assigned=parse_assignment(way, text))
    if way == "subscribePattern":
        try:
            return Choice(shown, pattern=re.compile(text.strip()))
        except re.error as failure:
            raise ConfigError(f"{shown}: not a regular expression ({failure})") from failure
    topics = _names(text.split(","))
    if not topics:
        raise ConfigError(f"{shown}: names no topic")
    return Choice(shown, topics=topics)


def _names(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
