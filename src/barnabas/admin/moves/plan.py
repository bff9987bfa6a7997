"""The cost of a reassignment, and a proposal for one, from assignments and sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.metadata.replica_placement import assign_replicas
from barnabas.model.ids import TopicPartition

Assignments = Mapping[TopicPartition, Sequence[int]]

TRIES_MAX = 16
"""Start positions of a spread to compare; more are not better, only slower."""


class Holding(NamedTuple):
    """The current state of a partition."""

    replicas: tuple[int, ...]
    leader: int
    size_bytes: int | None
    """None if the leader does not report it."""


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's change."""

    partition: TopicPartition
    before: tuple[int, ...]
    after: tuple[int, ...]
    leader: int
    size_bytes: int | None

    @property
    def adding(self) -> tuple[int, ...]:
        """Return the brokers that get a replica."""
        return tuple(broker for broker in self.after if broker not in self.before)

    @property
    def removing(self) -> tuple[int, ...]:
        """Return the brokers whose replica is deleted."""
        return tuple(broker for broker in self.before if broker not in self.after)

    @property
    def bytes_to_copy(self) -> int:
        """Return the bytes to copy."""
        return (self.size_bytes or 0) * len(self.adding)


@dataclass(slots=True)
class BrokerTotal:
    """What a reassignment means for one broker."""

    receives: int = 0
    sends: int = 0
    """Read from it: it leads partitions that are copied."""
    drops: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    """All moves, and their totals."""

    moves: tuple[Move, ...]
    brokers: Mapping[int, BrokerTotal]

    @property
    def bytes_to_copy(self) -> int:
        """Return the total bytes to copy."""
        return sum(move.bytes_to_copy for move in self.moves)


def cost_of(present: Mapping[TopicPartition, Holding], target: Assignments) -> Cost:
    """Return the cost of a target assignment; unchanged partitions are not among its moves."""
    moves: list[Move] = []
    totals: dict[int, BrokerTotal] = {}
    for key in sorted(target):
        held = present[key]
        move = Move(key, held.replicas, tuple(target[key]), held.leader, held.size_bytes)
        if move.before == move.after:
            continue
        moves.append(move)
        size = move.size_bytes or 0
        for broker in move.adding:
            totals.setdefault(broker, BrokerTotal()).receives += size
        for broker in move.removing:
            totals.setdefault(broker, BrokerTotal()).drops += size
        if move.adding and move.leader >= 0:
            totals.setdefault(move.leader, BrokerTotal()).sends += move.bytes_to_copy
    return Cost(tuple(moves), dict(sorted(totals.items())))


def propose(
    present: Mapping[TopicPartition, Holding], brokers: Mapping[int, str | None]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Spread partitions over brokers (with their racks), each with its current number of replicas.

    Every topic is spread like a new one. The start of a spread is arbitrary: the one with the most
    even load is chosen and, among equals, the one that copies least.
    """
    topics: dict[str, dict[int, Holding]] = {}
    for key in sorted(present):
        topics.setdefault(key.topic, {})[key.partition] = present[key]
    replicas: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for topic, partitions in topics.items():
        spread = min(
            _spreads(partitions, brokers),
            key=lambda spread: (
                _uneven(brokers, replicas, Counter(b for held in spread.values() for b in held)),
                _uneven(brokers, leaders, Counter(held[0] for held in spread.values())),
                _copied(partitions, spread),
            ),
        )
        for number, held in spread.items():
            proposed[TopicPartition(topic, number)] = held
            replicas.update(held)
            leaders[held[0]] += 1
    return proposed


def _spreads(
    partitions: Mapping[int, Holding], brokers: Mapping[int, str | None]
) -> list[dict[int, tuple[int, ...]]]:
    width = max(len(held.replicas) for held in partitions.values())
    tries = range(min(len(brokers), TRIES_MAX))
    count = max(partitions) + 1
    spreads = []
    for start in tries:
        for shift in tries:
            whole = assign_replicas(brokers, range(count), width, start=start, shift=shift)
            spreads.append({n: whole[n][: len(held.replicas)] for n, held in partitions.items()})
    return spreads


def _uneven(brokers: Mapping[int, str | None], before: Counter[int], more: Counter[int]) -> int:
    counts = [before[broker] + more[broker] for broker in brokers]
    return max(counts) - min(counts)


def _copied(
    partitions: Mapping[int, Holding], spread: Mapping[int, tuple[int, ...]]
) -> tuple[int, int, int]:
    """Return the bytes and replicas to copy, and how many positions in replica lists change."""
    size = copies = changes = 0
    for number, held in partitions.items():
        fresh = len(set(spread[number]) - set(held.replicas))
        size += fresh * (held.size_bytes or 0)
        copies += fresh
        changes += sum(a != b for a, b in zip(spread[number], held.replicas, strict=True))
    return size, copies, changes
