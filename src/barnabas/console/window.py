"""The window: what the broker's process knows and no request tells, declared here, built there.

Everything is read only, cheap, and answered at once from memory. Names and texts in it that come
from clients are for pages that escape them. What a visitor may not describe is left out by the
pages: they ask the door.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from barnabas.diary.concerns import Concerns
from barnabas.model.observations import (
    BrokerSeen,
    Diary,
    DiaryEntry,
    Directory,
    Health,
    LogLine,
    LogState,
    Replicas,
    RequestsSeen,
    RequestTimes,
    Sample,
    TopicClient,
    TopicCounts,
)

__all__ = [
    "BrokerSeen",
    "Diary",
    "DiaryEntry",
    "Directory",
    "Health",
    "LogLine",
    "LogState",
    "Replicas",
    "RequestTimes",
    "RequestsSeen",
    "Sample",
    "TopicClient",
    "TopicCounts",
    "Window",
]


class Window(Protocol):
    """A broker, from inside."""

    @property
    def version(self) -> str:
        """The version of Barnabas."""

    @property
    def started_ms(self) -> int:
        """When the console was started, by the wall clock."""

    @property
    def cluster_id(self) -> str:
        """The id of the cluster."""

    def history(self) -> Sequence[Sample]:
        """Return the samples of the last hour, oldest first."""

    def value(self, metric: str, *labels: str) -> float | None:
        """Return the value of a counter or gauge by its exposed name; None if there is none."""

    def request_times(self) -> Sequence[RequestTimes]:
        """Return the times of all requests that there were, by API."""

    def directories(self) -> Sequence[Directory]:
        """Return the data directories; free space as of the last sample."""

    def brokers(self) -> Sequence[BrokerSeen]:
        """Return the live brokers, by id."""

    async def replicas_of(self, broker_id: int) -> Replicas:
        """Return the replicas of a broker; walks the partitions of the cluster."""

    def health(self) -> Health:
        """Return what is wrong; walks the partitions, at most once in a second."""

    async def diary(self, limit: int = 100, wanted: Concerns | None = None) -> Diary:
        """Return the newest entries of the cluster's diary: all, or those that are wanted."""

    async def behind(self) -> Sequence[tuple[str, float]]:
        """Return the groups with members that this broker coordinates and that are far behind.

        With the seconds of the partition that is most behind, the worst first.
        """

    def lag_seconds(self, group: str) -> Mapping[tuple[str, int], float]:
        """Return the lag in seconds of a group's partitions, where it is known."""

    def log_lines(
        self, *, level: int = 0, logger: str = "", text: str = "", limit: int = 100
    ) -> Sequence[LogLine]:
        """Return the last lines of the broker's log, the newest first.

        From a level on, of a logger and those below it, containing `text` in any case.
        """

    def requests(self) -> RequestsSeen:
        """Return what was seen of requests since the console began, and what waits now."""

    def topic_clients(self, topic: str) -> Sequence[TopicClient]:
        """Return who has lately written to a topic at this broker, or read it."""

    def topic_counts(self, topic: str) -> TopicCounts:
        """Return the traffic of a topic at this broker, since its start."""

    def log_states(self, topic: str) -> Sequence[LogState]:
        """Return what retention and compaction have made of a topic's logs at this broker."""
