"""Which topics are replicated, and their names on the target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.mirror.positions import TOPIC_PREFIX
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition
from barnabas.model.patterns import Pattern, compile_pattern


class TopicFilter:
    """Topics whose whole names match a pattern, without excluded and internal ones."""

    def __init__(
        self, include: Iterable[str], exclude: Iterable[str] = (), *, prefix: str = ""
    ) -> None:
        """Compile the patterns, any of which may match; `prefix` precedes names on the target."""
        self._included = [_compile("--topics", text) for text in include]
        self._excluded = [_compile("--exclude", text) for text in exclude]
        if not self._included:
            raise InvalidValueError("--topics must have at least one pattern")
        self.prefix = prefix

    def replicates(self, topic: str, *, internal: bool = False) -> bool:
        """Return whether a topic of the source is replicated."""
        # Names that start with two underscores belong to brokers and tools.
        if internal or topic.startswith(("__", TOPIC_PREFIX)):
            return False
        return any(pattern.fullmatch(topic) for pattern in self._included) and not any(
            pattern.fullmatch(topic) for pattern in self._excluded
        )

    def target_topic(self, topic: str) -> str:
        """Return the name on the target of a topic of the source."""
        return self.prefix + topic


def _compile(option: str, text: str) -> Pattern:
    try:
        return compile_pattern(text)
    except InvalidValueError as failure:
        raise InvalidValueError(f"{option}: {failure}") from failure


@dataclass(frozen=True, slots=True)
class ReplicationFlow:
    """From which cluster to which, with the mirror's positions topic and its prefix of names."""

    source_id: str
    target_id: str
    positions_topic: str
    prefix: str = ""

    @property
    def group(self) -> str:
        """The group on the target whose offsets are the checkpoints of the shards."""
        return self.positions_topic

    def target_of(self, partition: TopicPartition) -> TopicPartition:
        """Return the target partition of a source partition."""
        return TopicPartition(self.prefix + partition.topic, partition.partition)

    def source_of(self, partition: TopicPartition) -> TopicPartition | None:
        """Return the source partition of a target partition; None if it lacks the prefix."""
        if not partition.topic.startswith(self.prefix):
            return None
        return TopicPartition(partition.topic.removeprefix(self.prefix), partition.partition)
