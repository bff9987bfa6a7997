"""The change from one sample of a cluster to the next, as rates."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from barnabas.cli.top.page import Page
from barnabas.cli.top.requests import RequestRow, request_rows
from barnabas.cli.top.sample import Sample
from barnabas.model.ids import TopicPartition

Numbers = Callable[[Sample], Mapping[TopicPartition, int]]
"""Picks what is compared."""


class Change:
    """The change from one sample to the next."""

    def __init__(self, before: Sample | None, after: Sample) -> None:
        self.before, self.after = before, after
        passed_s = after.at_s - before.at_s if before is not None else 0.0
        self.seconds = passed_s if passed_s > 0 else None
        self.same_topics: set[str] = set()
        """Topics that were there before, and have not been recreated."""
        self.pages: dict[int, tuple[Page, Page]] = {}
        if before is not None:
            ids = {topic.name: topic.topic_id for topic in before.topics}
            self.same_topics = {
                topic.name for topic in after.topics if ids.get(topic.name) == topic.topic_id
            }
            self.pages = {
                key: (before.pages[key], page)
                for key, page in after.pages.items()
                # A broker repeats the same page to all that ask within a second.
                if key in before.pages and before.pages[key] != page
            }

    @property
    def has_all_pages(self) -> bool:
        """Whether the metrics of all brokers are known: if not, their sums say too little."""
        return bool(self.pages) and len(self.pages) >= len(self.after.brokers)

    def written(self, partition: TopicPartition) -> float | None:
        """Return the records per second that were appended."""
        return self._grown(partition, lambda sample: sample.ends)

    def grown(self, partition: TopicPartition) -> float | None:
        """Return the bytes per second by which the leader's log has grown."""
        return self._grown(partition, lambda sample: sample.sizes)

    def _grown(self, partition: TopicPartition, numbers: Numbers) -> float | None:
        if self.before is None or self.seconds is None or partition.topic not in self.same_topics:
            return None
        first, last = numbers(self.before).get(partition), numbers(self.after).get(partition)
        if first is None or last is None:
            return None
        # It falls by an unclean election or by retention.
        return max(last - first, 0) / self.seconds

    def read(self, name: str, partition: TopicPartition) -> float | None:
        """Return the records per second by which a group has moved on."""
        if self.before is None or self.seconds is None or name not in self.before.groups:
            return None
        first = self.before.groups[name].committed.get(partition)
        last = self.after.groups[name].committed.get(partition)
        if first is None or last is None:
            return None
        return max(last - first, 0) / self.seconds  # it falls by a reset

    def counted(
        self, name: str, *, topic: str | None = None, broker: int | None = None
    ) -> float | None:
        """Return the rate of a counter of metrics, of one broker or of all."""
        if self.seconds is None:
            return None
        grown: list[float] = []
        for key, pair in self.pages.items():
            if broker not in (None, key):
                continue
            if topic is None:
                first, last = (page.total(name) for page in pair)
            else:
                first, last = (page.of(name).get((("topic", topic),)) for page in pair)
            if last is not None:
                start = first or 0.0
                grown.append(last - start if last >= start else last)
        return sum(grown) / self.seconds if grown else None

    def requests(self) -> tuple[RequestRow, ...] | None:
        """Return the requests by API."""
        if not self.pages or self.seconds is None:
            return None
        return tuple(request_rows(self.pages.values(), self.seconds))
