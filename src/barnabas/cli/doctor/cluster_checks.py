"""Checks of a cluster, as its brokers describe it: partitions, versions, disks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from barnabas.cli.doctor.finding import Finding, amber, green, red
from barnabas.cli.output import counted
from barnabas.diary.wording import size
from barnabas.model.ids import TopicPartition

SPACE_AMBER, SPACE_RED = 0.15, 0.05
"""The free part of a disk."""
NAMED_MAX = 3


@dataclass(frozen=True, slots=True)
class Sick:
    """A partition that is not well, and the reason if the diary has it."""

    partition: TopicPartition
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    why: str | None = None

    def __str__(self) -> str:
        state = f"{self.partition} (ISR {list(self.isr)} of {list(self.replicas)}"
        return f"{state}: {self.why})" if self.why else f"{state})"


def _listed(sick: Sequence[Sick]) -> str:
    more = len(sick) - NAMED_MAX
    named = ", ".join(map(str, sick[:NAMED_MAX]))
    return f"{named} and {more} more" if more > 0 else named


@dataclass(frozen=True, slots=True)
class Leaders:
    """Partitions without a leader."""

    partitions: int
    leaderless: tuple[Sick, ...]

    def judge(self) -> Finding:
        """Return whether every partition can be read and written."""
        if self.leaderless:
            return red(
                "leaders",
                "",
                f"{counted(len(self.leaderless), 'partition')} without a leader: "
                f"{_listed(self.leaderless)}",
                "start the brokers of their replicas; ask: barnabas why partition "
                f"{self.leaderless[0].partition}",
            )
        return green("leaders", "", f"all {counted(self.partitions, 'partition')} have leaders")


@dataclass(frozen=True, slots=True)
class MinIsr:
    """Partitions whose in-sync replicas are fewer than min.insync.replicas, or as many."""

    under: tuple[Sick, ...]
    at: tuple[Sick, ...]
    """Replicated ones that will be under it as soon as any one broker stops."""

    def judge(self) -> Finding:
        """Return whether producers with acks=all are accepted, also without one broker."""
        if self.under:
            return red(
                "min ISR",
                "",
                f"acks=all is rejected by {counted(len(self.under), 'partition')}: "
                f"{_listed(self.under)}",
                "start the brokers that are missing; ask: barnabas why partition "
                f"{self.under[0].partition}",
            )
        if self.at:
            return amber(
                "min ISR",
                "",
                f"{counted(len(self.at), 'partition')} will reject acks=all when one more broker "
                f"stops: {_listed(self.at)}",
                "keep min.insync.replicas below the replication factor, and replicas in sync",
            )
        return green("min ISR", "", "no partition rejects acks=all")


@dataclass(frozen=True, slots=True)
class Replication:
    """Partitions with replicas that are not in sync, and topics with one replica only."""

    brokers: int
    lagging: tuple[Sick, ...]
    single: tuple[str, ...]

    def judge(self) -> Finding:
        """Return whether the loss of a broker would lose nothing."""
        if self.lagging:
            return amber(
                "replicas",
                "",
                f"not in sync in {counted(len(self.lagging), 'partition')}: "
                f"{_listed(self.lagging)}",
                f"ask: barnabas why partition {self.lagging[0].partition}",
            )
        if self.single and self.brokers > 1:
            named = ", ".join(self.single[:NAMED_MAX])
            return amber(
                "replicas",
                "",
                f"{counted(len(self.single), 'topic')} with one replica: {named}",
                "add replicas: barnabas reassign",
            )
        return green("replicas", "", "all in sync")


@dataclass(frozen=True, slots=True)
class SameVersions:
    """The APIs that each broker supports, with their versions as text."""

    apis: Mapping[int, Mapping[str, str]]

    def judge(self) -> Finding:
        """Return whether all brokers support the same."""
        brokers = sorted(self.apis)
        first = self.apis[brokers[0]] if brokers else {}
        for broker in brokers[1:]:
            other = self.apis[broker]
            names = [
                name for name in sorted(first.keys() | other.keys())
                if first.get(name) != other.get(name)
            ]  # fmt: skip
            if names:
                name = names[0]
                return amber(
                    "same release",
                    "",
                    f"brokers {brokers[0]} and {broker} differ in "
                    f"{counted(len(names), 'API')}: {name} {first.get(name, 'missing')} and "
                    f"{other.get(name, 'missing')}",
                    "finish the upgrade: run the same release on all brokers",
                )
        return green("same release", "", f"{counted(len(brokers), 'broker')} with the same APIs")


@dataclass(frozen=True, slots=True)
class LogDir:
    """A log directory, as its broker describes it."""

    broker: int
    path: str
    total_bytes: int | None = None
    usable_bytes: int | None = None
    failure: str | None = None

    def judge(self) -> Finding:
        """Return whether it is in use, and has space."""
        return space(
            f"broker {self.broker} {self.path}",
            self.total_bytes,
            self.usable_bytes,
            self.failure,
        )


def space(
    about: str, total_bytes: int | None, usable_bytes: int | None, failure: str | None
) -> Finding:
    """Return whether a disk has space; None where a broker is too old to say."""
    if failure is not None:
        step = "mend the disk or its mount, and restart the broker"
        return red("disk space", about, failure, step)
    if total_bytes is None or usable_bytes is None or not total_bytes:
        return green("disk space", about, "in use (this broker does not say how full it is)")
    free = usable_bytes / total_bytes
    text = f"{size(usable_bytes)} of {size(total_bytes)} free"
    step = "add space, or shorten retention: barnabas configs alter"
    if free < SPACE_RED:
        return red("disk space", about, text, step)
    if free < SPACE_AMBER:
        return amber("disk space", about, text, step)
    return green("disk space", about, text)
