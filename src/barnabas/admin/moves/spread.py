"""A proposal that evens out an existing assignment, and moves no more than that needs.

`propose` spreads topics as if they were new. This one is for brokers that join a cluster with data:
replicas move from those that have most to those that have fewest, the smallest partitions first,
and then the first replicas, which lead, are evened out without a copy.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

from barnabas.admin.moves.plan import Holding
from barnabas.model.ids import TopicPartition

Racks = Mapping[int, str | None]


def spread(
    present: Mapping[TopicPartition, Holding], racks: Racks
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return new replicas of the partitions that change, for brokers with their racks.

    A partition stays on as many racks as it is on. Replicas on other brokers than these stay.
    """
    spreading = _Spreading(present, racks)
    while spreading.moves_a_replica():
        pass
    while spreading.moves_a_leader():
        pass
    return {
        key: tuple(replicas)
        for key, replicas in sorted(spreading.replicas.items())
        if tuple(replicas) != present[key].replicas
    }


class _Spreading:
    """An assignment in work, and what each broker has of it."""

    def __init__(self, present: Mapping[TopicPartition, Holding], racks: Racks) -> None:
        self.replicas = {key: list(held.replicas) for key, held in present.items()}
        self._sizes = {key: held.size_bytes or 0 for key, held in present.items()}
        self._racks = racks
        self._counts = Counter(dict.fromkeys(racks, 0))
        self._leads = Counter(dict.fromkeys(racks, 0))
        self._of_topic: Counter[tuple[str, int]] = Counter()
        for key, replicas in self.replicas.items():
            self._leads[replicas[0]] += 1
            for broker in replicas:
                self._counts[broker] += 1
                self._of_topic[key.topic, broker] += 1

    def moves_a_replica(self) -> bool:
        """Move one replica to a broker that has at least two fewer; return whether there is one."""
        order = sorted(self._racks, key=lambda broker: (self._counts[broker], broker))
        for target in order:
            for source in reversed(order):
                if self._counts[source] - self._counts[target] < 2:
                    break
                movable = [key for key in self.replicas if self._may_move(key, source, target)]
                if movable:
                    ranked = {self._rank(key, source, target): key for key in movable}
                    self._move(ranked[min(ranked)], source, target)
                    return True
        return False

    def _rank(self, key: TopicPartition, source: int, target: int) -> tuple[int, bool, int, str]:
        """Return what is compared of partitions that may move: the lowest does."""
        uneven = self._of_topic[key.topic, source] - self._of_topic[key.topic, target]
        leads = self.replicas[key][0] == source
        wanted = self._leads[source] > self._leads[target]
        return -uneven, leads is not wanted, self._sizes[key], str(key)

    def _may_move(self, key: TopicPartition, source: int, target: int) -> bool:
        replicas = self.replicas[key]
        if source not in replicas or target in replicas:
            return False
        before = {self._racks.get(each) for each in replicas}
        after = {self._racks.get(each) for each in replicas if each != source}
        return len(after | {self._racks[target]}) >= len(before)

    def _move(self, key: TopicPartition, source: int, target: int) -> None:
        replicas = self.replicas[key]
        if replicas[0] == source:
            self._leads[source] -= 1
            self._leads[target] += 1
        replicas[replicas.index(source)] = target
        for broker, change in ((source, -1), (target, 1)):
            self._counts[broker] += change
            self._of_topic[key.topic, broker] += change

    def moves_a_leader(self) -> bool:
        """Let a broker lead one partition less, and one that leads two fewer one more.

        It may take several swaps: each hands on what the one before took over.
        """
        for source in sorted(self._racks, key=lambda broker: (-self._leads[broker], broker)):
            path = self._path(source)
            if path:
                for key, broker in path:
                    replicas = self.replicas[key]
                    position = replicas.index(broker)
                    replicas[0], replicas[position] = broker, replicas[0]
                self._leads[source] -= 1
                self._leads[path[-1][1]] += 1
                return True
        return False

    def _path(self, source: int) -> list[tuple[TopicPartition, int]]:
        """Return the shortest way to hand one leadership on: partitions with their new leaders."""
        led: dict[int, list[TopicPartition]] = {}
        for key, replicas in self.replicas.items():
            led.setdefault(replicas[0], []).append(key)
        came: dict[int, tuple[TopicPartition, int]] = {}
        waiting = deque([source])
        while waiting:
            broker = waiting.popleft()
            for key in led.get(broker, ()):
                for other in self.replicas[key][1:]:
                    if other == source or other in came or other not in self._racks:
                        continue
                    came[other] = key, broker
                    if self._leads[source] - self._leads[other] >= 2:
                        return self._traced(came, source, other)
                    waiting.append(other)
        return []

    @staticmethod
    def _traced(
        came: Mapping[int, tuple[TopicPartition, int]], source: int, end: int
    ) -> list[tuple[TopicPartition, int]]:
        path = []
        while end != source:
            key, before = came[end]
            path.append((key, end))
            end = before
        return path[::-1]
