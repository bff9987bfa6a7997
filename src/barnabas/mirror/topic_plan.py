"""What must be done so that the target's topics are like the source's.

Topics are created with the source's number of partitions and its own options; both are followed
later. A target may have more partitions than its source. An option that the source leaves at its
default is left alone, so that the target may have one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LEFT_OUT = frozenset(
    {
        # About brokers of one cluster.
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "min.insync.replicas",
        "unclean.leader.election.enable",
        "remote.storage.enable",
        # Timestamps are kept: the target must neither replace nor judge them.
        "message.timestamp.type",
        "message.timestamp.difference.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
    }
)
"""Options of topics that stay where they are."""


@dataclass(frozen=True, slots=True)
class TopicShape:
    """A topic's number of partitions, and the options that were set for it."""

    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def carried(self) -> dict[str, str]:
        """The options that a mirror takes along."""
        return {name: self.configs[name] for name in self.configs if name not in LEFT_OUT}


@dataclass(frozen=True, slots=True)
class Plan:
    """Changes to the target, by the names that topics have there."""

    create: dict[str, TopicShape]
    grow: dict[str, int]
    configure: dict[str, dict[str, str]]

    def __bool__(self) -> bool:
        return bool(self.create or self.grow or self.configure)


def plan_topics(source: Mapping[str, TopicShape], target: Mapping[str, TopicShape]) -> Plan:
    """Compare shapes under the target's names."""
    plan = Plan({}, {}, {})
    for name, wanted in source.items():
        present = target.get(name)
        if present is None:
            plan.create[name] = TopicShape(wanted.partitions, wanted.carried)
            continue
        if present.partitions < wanted.partitions:
            plan.grow[name] = wanted.partitions
        different = {
            option: value
            for option, value in wanted.carried.items()
            if present.configs.get(option) != value
        }
        if different:
            plan.configure[name] = different
    return plan
