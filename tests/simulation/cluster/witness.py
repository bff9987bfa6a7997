"""What a history of a cluster must never show, noted while it runs and held against its end.

The witness sees more than any client: which broker takes which role in which epoch, who speaks as
the controller, and how far each leader lets readers see. Clients tell it what they were promised
and what they read. A complaint is a broken promise, whatever the faults were.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from barnabas.model.ids import TopicPartition
from barnabas.replication.partition import Partition
from barnabas.replication.standing import TRUST_MS

Reign = tuple[object, int]
"""One epoch of a partition, as one object in one life of a broker holds it."""

BOUND_S = TRUST_MS / 1000
"""How long after its session has ended, and another has acknowledged something in a newer epoch, a
broker may still answer for what it led.
"""


@dataclass
class Witness:
    """The notes of one history."""

    complaints: list[str] = field(default_factory=list)
    values: dict[TopicPartition, dict[int, bytes]] = field(default_factory=dict)
    """By offset: what was acknowledged or read there."""
    acknowledged: dict[TopicPartition, set[int]] = field(default_factory=dict)
    first_acknowledged: asyncio.Event = field(default_factory=asyncio.Event)
    visible: dict[TopicPartition, int] = field(default_factory=dict)
    """The highest watermark of any leader: nothing below it may ever be lost."""
    epochs: int = 0
    controllers: int = 0
    """How often a controller was heard."""
    superseded: int = 0
    """Answers of brokers without a session, after a newer leader had acknowledged: in the bound."""
    refusals: int = 0
    """Answers of silent brokers, after a newer leader had acknowledged: that is not for them."""
    offsets_shown: int = 0
    """How often a coordinator's committed offset was held against what was confirmed before."""
    away_acknowledged: int = 0
    """Records acknowledged while the coordination service was away."""
    _leaders: dict[tuple[TopicPartition, object, int], int] = field(default_factory=dict)
    _controllers: dict[int, int] = field(default_factory=dict)
    _watermarks: dict[Reign, int] = field(default_factory=dict)
    _latest: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    _offsets: dict[str, int] = field(default_factory=dict)
    _first_acks: dict[TopicPartition, dict[int, float]] = field(default_factory=dict)
    """When something was first acknowledged, by epoch."""
    _confirmed: dict[str, list[tuple[float, int]]] = field(default_factory=dict)

    def complain(self, text: str) -> None:
        """Note a broken promise."""
        self.complaints.append(text)

    # -- brokers ------------------------------------------------------------------------------

    def leads(self, broker_id: int, partition: Partition) -> None:
        """A broker takes the lead of a partition: alone in that epoch, and in sync itself."""
        key = partition.topic_partition
        reign = (key, partition.topic_id, partition.leader_epoch)
        other = self._leaders.setdefault(reign, broker_id)
        self.epochs += 1
        if other != broker_id:
            self.complain(f"{key}: {other} and {broker_id} lead in epoch {reign[2]}")
        if broker_id not in partition.isr or not set(partition.isr) <= set(partition.replicas):
            self.complain(f"{key}: ISR {partition.isr} of replicas {partition.replicas}")

    def controls(self, broker_id: int, epoch: int) -> None:
        """A broker is heard as the controller: it must be the only one in that epoch."""
        self.controllers += 1
        other = self._controllers.setdefault(epoch, broker_id)
        if other != broker_id:
            self.complain(f"{other} and {broker_id} are controllers in epoch {epoch}")

    def shows(self, partition: Partition) -> None:
        """A leader lets readers see up to its watermark: in its reign that only rises."""
        key, now = partition.topic_partition, partition.log.high_watermark
        reign = (partition, partition.leader_epoch)
        before = self._watermarks.get(reign, 0)
        if now < before:
            self.complain(f"{key}: the watermark went from {before} to {now} in one reign")
        self._watermarks[reign] = now
        self.visible[key] = max(self.visible.get(key, 0), now)

    def acknowledges(self, key: TopicPartition, epoch: int, now_s: float) -> None:
        """A leader or coordinator acknowledged something."""
        self._first_acks.setdefault(key, {}).setdefault(epoch, now_s)

    def superseded_since(self, key: TopicPartition, epoch: int) -> float | None:
        """Return when somebody first acknowledged something in a newer epoch."""
        newer = [at for each, at in self._first_acks.get(key, {}).items() if each > epoch]
        return min(newer, default=None)

    def answers(
        self, broker_id: int, key: TopicPartition, epoch: int, ended_s: float, now_s: float
    ) -> None:
        """A broker whose session ended at a time answers for a partition that it leads."""
        since_s = self.superseded_since(key, epoch)
        if since_s is None:
            return
        self.superseded += 1
        late_s = now_s - max(since_s, ended_s)
        if late_s > BOUND_S:
            self.complain(
                f"{key}: {broker_id} answers in epoch {epoch} {late_s:.3f} s after a newer leader"
            )

    def refuses(self, key: TopicPartition, epoch: int) -> None:
        """A silent broker refuses what another may be asked for."""
        if self.superseded_since(key, epoch) is not None:
            self.refusals += 1

    # -- clients ------------------------------------------------------------------------------

    def promised(self, key: TopicPartition, offset: int, value: bytes) -> None:
        """A producer was told that its record is safe."""
        self.acknowledged.setdefault(key, set()).add(offset)
        self.first_acknowledged.set()
        self.read(key, offset, value)

    def read(self, key: TopicPartition, offset: int, value: bytes) -> None:
        """A record was seen at an offset: nobody may ever see another one there."""
        other = self.values.setdefault(key, {}).setdefault(offset, value)
        if other != value:
            self.complain(f"{key}@{offset} is {other!r} and {value!r}")

    def latest(self, key: TopicPartition, epoch: int, offset: int) -> None:
        """A leader told a consumer where the log ends; one of an older epoch is not believed."""
        known_epoch, known = self._latest.get(key, (-1, 0))
        if epoch < known_epoch:
            return
        if offset < known:
            self.complain(f"{key}: the end went from {known} to {offset} (epoch {epoch})")
        self._latest[key] = (epoch, max(known, offset))

    def committed(self, group: str, offset: int, now_s: float) -> None:
        """A commit was confirmed."""
        self._confirmed.setdefault(group, []).append((now_s, offset))
        self._offsets[group] = max(self._offsets.get(group, 0), offset)

    def committed_least(self, group: str) -> int:
        """Return the offset that a look which begins now must show."""
        return self._offsets.get(group, 0)

    def committed_before(self, group: str, then_s: float) -> int:
        """Return the highest offset whose commit was confirmed before a time."""
        found = [offset for at, offset in self._confirmed.get(group, ()) if at < then_s]
        return max(found, default=0)

    def tells_committed(
        self, broker_id: int, group: str, offset: int, least: int, late: set[int]
    ) -> None:
        """Whoever it is told an offset: even one that was deposed may not tell too old a one."""
        if offset < least and offset not in late:
            self.complain(f"{broker_id} tells {offset} for {group}, after {least} was confirmed")

    def shows_committed(self, group: str, offset: int, least: int, late: set[int]) -> None:
        """A coordinator told a committed offset, which never goes back.

        Excused are the `late` ones: commits that had no answer, and may arrive at any time.
        """
        self.offsets_shown += least > 0
        if offset >= least:
            self._offsets[group] = max(self._offsets.get(group, 0), offset)
        elif offset in late:
            self._offsets[group] = offset
        else:
            self.complain(f"the offset of {group} went from {least} to {offset}")

    # -- the end ------------------------------------------------------------------------------

    def judge(self, key: TopicPartition, found: dict[int, bytes], end: int) -> None:
        """Hold a partition's records, as they are in the end, against all that was seen."""
        for offset, value in self.values.get(key, {}).items():
            if found.get(offset) != value:
                kind = "acknowledged" if offset in self.acknowledged.get(key, ()) else "read"
                self.complain(f"{key}@{offset} was {kind} as {value!r}, is {found.get(offset)!r}")
        if end < self.visible.get(key, 0):
            self.complain(f"{key} ends at {end}, was visible up to {self.visible[key]}")
