"""The series of groups: offsets, lag, members; each group is exposed by its coordinator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from barnabas.broker.monitoring.consumer_lag import ConsumerLag, PartitionLag
from barnabas.broker.monitoring.family import Family
from barnabas.broker.monitoring.label_texts import LabelTexts
from barnabas.metrics.catalogue import groups as catalogue


class _OfTopic(NamedTuple):
    """What a group has in one topic."""

    text: str
    offsets: int
    lag: int | None
    """None if the end of a partition is not known yet: a sum without it would be wrong."""
    stable_lag: int | None
    seconds: float | None


class LagSeries:
    """A collector; it reads one group after the other while the first family is written."""

    def __init__(self, consumer_lag: ConsumerLag, on_first: Callable[[], None]) -> None:
        """Call `on_first` at the first scrape after a while: other leaders must be asked."""
        self._lag = consumer_lag
        self._on_first = on_first
        self._groups = LabelTexts("consumergroup")
        self._topics = LabelTexts("consumergroup", "topic")
        self._partitions = LabelTexts("consumergroup", "topic", "partition")

    def collect(self) -> Iterator[Family]:
        """Yield the families; see `Collector`."""
        for texts in (self._groups, self._topics, self._partitions):
            texts.begin()
        read = _Groups(self._lag, self._on_first, self._groups, self._topics, self._partitions)
        topics, rows = read.topics, read.rows
        yield catalogue.MEMBERS, read.members
        yield catalogue.CURRENT_OFFSET_SUM, ((each.text, each.offsets) for each in topics())
        yield catalogue.LAG_SUM, _known((each.text, each.lag) for each in topics())
        yield catalogue.STABLE_LAG_SUM, _known((each.text, each.stable_lag) for each in topics())
        yield catalogue.LAG_SECONDS_MAX, _known((each.text, each.seconds) for each in topics())
        yield catalogue.CURRENT_OFFSET, ((text, row.committed) for text, row in rows())
        yield catalogue.LAG, _known((text, row.lag) for text, row in rows())
        yield catalogue.STABLE_LAG, _known((text, row.stable_lag) for text, row in rows())
        yield catalogue.LAG_SECONDS, _known((text, row.seconds) for text, row in rows())


class _Groups:
    """All groups as of one scrape, read once."""

    def __init__(
        self,
        lag: ConsumerLag,
        on_first: Callable[[], None],
        groups: LabelTexts,
        topics: LabelTexts,
        partitions: LabelTexts,
    ) -> None:
        self._lag = lag
        self._on_first = on_first
        self._group_texts = groups
        self._topic_texts = topics
        self._partition_texts = partitions
        self._topics: list[_OfTopic] = []
        self._rows: list[tuple[str, PartitionLag]] = []
        self.members = self._read()
        """Yields the number of members of each group; that is what reads the groups."""

    def topics(self) -> Iterator[_OfTopic]:
        """Yield each topic of each group."""
        self._finish()
        yield from self._topics

    def rows(self) -> Iterator[tuple[str, PartitionLag]]:
        """Yield each partition of each group."""
        self._finish()
        yield from self._rows

    def _finish(self) -> None:
        """Read the groups that are left, if the writer has not taken all members."""
        for _ in self.members:
            pass

    def _read(self) -> Iterator[tuple[str, float]]:
        if self._lag.watch():  # not before: a scrape of other metrics does not read the lag
            self._on_first()
        for coordinator in self._lag.coordinators():
            for group_id, group in list(coordinator.groups.items()):
                by_topic: dict[str, list[PartitionLag]] = {}
                for row in self._lag.of(coordinator, group_id):
                    by_topic.setdefault(row.key.topic, []).append(row)
                    self._rows.append((self._partition_texts.of((group_id, *row.key)), row))
                for topic, found in by_topic.items():
                    self._topics.append(self._sum(self._topic_texts.of((group_id, topic)), found))
                yield self._group_texts.of((group_id,)), len(group.members)

    def _sum(self, text: str, rows: list[PartitionLag]) -> _OfTopic:
        offsets = sum(row.committed for row in rows)
        known = [row for row in rows if row.lag is not None]
        if not known or any(row.lag is None and self._lag.is_led(row.key) for row in rows):
            return _OfTopic(text, offsets, None, None, None)
        return _OfTopic(
            text,
            offsets,
            sum(row.lag or 0 for row in known),
            sum(row.stable_lag or 0 for row in known),
            max((row.seconds for row in known if row.seconds is not None), default=None),
        )


def _known(series: Iterator[tuple[str, float | None]]) -> Iterator[tuple[str, float]]:
    """Leave out what is not known: a placeholder would spoil sums."""
    return ((text, value) for text, value in series if value is not None)
