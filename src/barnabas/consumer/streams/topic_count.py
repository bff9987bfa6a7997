"""The subscription of a consumer: topics with a number of streams each, or a pattern.

A stream of a consumer is known to the group as `<consumer id>-<number>`, and the order of those
names decides which stream gets which partitions: so it must be the same for every member.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from barnabas.consumer.streams.nodes import INTERNAL_TOPICS
from barnabas.model.errors import CorruptFileError, InvalidValueError
from barnabas.model.patterns import compile_pattern


class TopicCount(Protocol):
    """A subscription, static or by pattern."""

    @property
    def pattern(self) -> str:
        """The kind, as in the registration."""

    def encoded(self) -> dict[str, int]:
        """Return the subscription as in the registration."""

    def streams(self, topics: Iterable[str]) -> dict[str, int]:
        """Return how many streams read each topic, given the existing ones."""


@dataclass(frozen=True, slots=True)
class StaticTopics:
    """Topics by name, whether they exist or not."""

    counts: Mapping[str, int]
    pattern: str = "static"

    def __post_init__(self) -> None:
        for topic, count in self.counts.items():
            if count < 1:
                raise InvalidValueError(f"{count} streams for topic {topic!r}: must be at least 1")

    def encoded(self) -> dict[str, int]:
        return dict(self.counts)

    def streams(self, topics: Iterable[str]) -> dict[str, int]:
        return dict(self.counts)


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """Topics whose names match a regular expression (white list), or do not (black list).

    As in Kafka, commas in the expression stand for alternatives, and quotes around it are dropped.
    """

    expression: str
    count: int
    blacklist: bool = False
    exclude_internal: bool = True

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InvalidValueError(
                f"{self.count} streams for {self.expression!r}: must be at least 1"
            )
        compile_pattern(self.regex)

    @property
    def regex(self) -> str:
        """The expression that names are matched with."""
        text = self.expression.strip().replace(",", "|").replace(" ", "")
        return text.strip("\"'")

    @property
    def pattern(self) -> str:
        return "black_list" if self.blacklist else "white_list"

    def encoded(self) -> dict[str, int]:
        return {self.regex: self.count}

    def streams(self, topics: Iterable[str]) -> dict[str, int]:
        return {topic: self.count for topic in topics if self.allows(topic)}

    def allows(self, topic: str) -> bool:
        """Return whether a topic is selected."""
        if self.exclude_internal and topic in INTERNAL_TOPICS:
            return False
        matches = compile_pattern(self.regex).fullmatch(topic) is not None
        return matches != self.blacklist


def registered(
    path: str, subscription: Mapping[str, int], pattern: str, exclude_internal: bool
) -> TopicCount:
    """Return the subscription that a member has registered at a node."""
    if pattern not in ("white_list", "black_list"):
        return StaticTopics(dict(subscription))
    if len(subscription) != 1:
        raise CorruptFileError(
            f"node {path}: a {pattern} must have one pattern, not {len(subscription)}"
        )
    [(expression, count)] = subscription.items()
    return TopicFilter(expression, count, pattern == "black_list", exclude_internal)


def thread_ids(consumer_id: str, count: int) -> list[str]:
    """Return the names of a consumer's streams for one topic."""
    return [f"{consumer_id}-{number}" for number in range(count)]
