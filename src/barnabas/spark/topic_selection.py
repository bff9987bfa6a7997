"""Which partitions a query reads: `subscribe`, `subscribePattern` or `assign`.

A pattern may match any part of a topic's name, as in Spark's own connector.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.model.errors import ConfigError, InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.spark.offset_limits import parse_assignment

OPTIONS = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class SelectedTopic:
    """The id and the partitions of a topic at one time."""

    topic_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicSelection:
    """The value of one of the three options; `text` is shown in messages."""

    text: str
    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    assigned: tuple[TopicPartition, ...] = ()

    @property
    def names(self) -> tuple[str, ...] | None:
        """The topics to ask the cluster for; None: all."""
        if self.pattern is not None:
            return None
        return self.topics or tuple(dict.fromkeys(partition.topic for partition in self.assigned))

    def covers(self, topic: str) -> bool:
        """Return whether a topic of this name is selected."""
        if self.pattern is not None:
            return self.pattern.search(topic) is not None
        return topic in (self.names or ())

    def partitions(self, topics: Mapping[str, SelectedTopic]) -> list[TopicPartition]:
        """Return the selected partitions of the topics that exist."""
        if self.assigned:
            return [
                partition
                for partition in self.assigned
                if partition.topic in topics
                and partition.partition in topics[partition.topic].partitions
            ]
        return [
            TopicPartition(name, number)
            for name in sorted(topics)
            if self.covers(name)
            for number in topics[name].partitions
        ]

    def check(self, topics: Mapping[str, SelectedTopic]) -> None:
        """Raise if a topic or partition that is named does not exist."""
        for name in self.names or ():
            if name not in topics:
                raise InvalidValueError(f"{self.text}: topic {name} does not exist")
        for partition in self.assigned:
            if partition.partition not in topics[partition.topic].partitions:
                count = len(topics[partition.topic].partitions)
                raise InvalidValueError(
                    f"{self.text}: partition {partition} does not exist; "
                    f"{partition.topic} has {count} partitions"
                )


def parse_topic_selection(given: Mapping[str, str]) -> TopicSelection:
    """Parse the one of the three options that is given, from lower-case names."""
    chosen = [name for name in OPTIONS if name.lower() in given]
    if len(chosen) != 1:
        what = "none is set" if not chosen else f"{' and '.join(chosen)} are set"
        raise ConfigError(f"exactly one of {', '.join(OPTIONS)} must be set: {what}")
    name = chosen[0]
    text = given[name.lower()]
    shown = f"{name}={text}"
    if name == "assign":
        return TopicSelection(shown, assigned=parse_assignment(name, text))
    if name == "subscribePattern":
        try:
            return TopicSelection(shown, pattern=re.compile(text.strip()))
        except re.error as failure:
            raise ConfigError(f"{shown}: not a regular expression ({failure})") from failure
    topics = _names(text.split(","))
    if not topics:
        raise ConfigError(f"{shown}: must name at least one topic")
    return TopicSelection(shown, topics=topics)


def _names(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))
