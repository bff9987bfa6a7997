"""What the controller notes of its decisions, each once it is written: elections and ISRs."""

from __future__ import annotations

from barnabas.controller.causes import Cause
from barnabas.controller.knowledge import Knowledge
from barnabas.controller.leadership import Leadership
from barnabas.controller.phases import PartitionPhase
from barnabas.diary import subjects
from barnabas.model.ids import TopicPartition
from barnabas.model.note import Note, NoteSink

_ISR_CAUSES = {
    Cause.BROKER_GONE: "broker-gone",
    Cause.RESTARTED: "restarted",
    Cause.DIRECTORY_FAILED: "directory-failed",
    Cause.CONTROLLED_SHUTDOWN: "controlled-shutdown",
    Cause.REASSIGNMENT: "reassigned",
    Cause.UNCLEAN: "broker-gone",
}


class StateChanges:
    """Notes the state changes of partitions in one controller's term."""

    def __init__(self, knowledge: Knowledge, epoch: int, note: NoteSink) -> None:
        self._knowledge = knowledge
        self._epoch = epoch
        self._note = note
        self._offline: set[TopicPartition] = set()
        """Partitions that were noted to have no leader."""

    def led(
        self, key: TopicPartition, former: Leadership | None, present: Leadership, cause: Cause
    ) -> None:
        """Note a new leadership: who leads, why another one did before, and who is in sync."""
        if self._knowledge.goes(key.topic):
            return
        if cause is Cause.RESTARTED and former is not None and self._are_dead(former, present):
            cause = Cause.BROKER_GONE  # while there was no controller
        if present.leader >= 0:
            self._offline.discard(key)
            if former is None or former.leader != present.leader:
                self._elected(key, former, present, cause)
        if former is not None:
            gone = [broker for broker in former.isr if broker not in present.isr]
            if gone and cause in _ISR_CAUSES:
                data = {
                    "from": list(former.isr),
                    "to": list(present.isr),
                    "removed": gone,
                    "leader": present.leader,
                    "leader_epoch": present.leader_epoch,
                    "version": present.partition_epoch,
                    "controller_epoch": self._epoch,
                }
                self._write("isr.shrink", key, _ISR_CAUSES[cause], data)

    def _are_dead(self, former: Leadership, present: Leadership) -> bool:
        """Return whether all brokers that left the ISR are not alive now."""
        gone = set(former.isr) - set(present.isr)
        return bool(gone) and not gone & self._knowledge.brokers.keys()

    def _elected(
        self, key: TopicPartition, former: Leadership | None, present: Leadership, cause: Cause
    ) -> None:
        is_first = former is None
        why = cause.value
        if former is not None and present.leader not in former.isr:
            why = Cause.UNCLEAN.value
        elif cause is Cause.BROKER_GONE and former is not None and not self._is_gone(key, former):
            why = "replica-back"
        phase = self._knowledge.phase(key)
        self._write(
            "leader.elected",
            key,
            why,
            {
                "leader": present.leader,
                "previous": -1 if former is None else former.leader,
                "leader_epoch": present.leader_epoch,
                "isr": list(present.isr),
                "isr_before": [] if former is None else list(former.isr),
                "replicas": list(self._knowledge.replicas(key)),
                "version": present.partition_epoch,
                "controller_epoch": self._epoch,
                "from_state": "NewPartition" if is_first else _STATES.get(phase, phase.name),
            },
        )

    def _is_gone(self, key: TopicPartition, former: Leadership) -> bool:
        """Return whether the former leader can no longer lead; False if there was none."""
        return former.leader >= 0 and not self._knowledge.serves(former.leader, key)

    def offline(self, key: TopicPartition, cause: Cause) -> None:
        """Note that no leader can be elected, once until there is one again."""
        if key in self._offline:
            return
        self._offline.add(key)
        knowledge = self._knowledge
        held = knowledge.leaderships.get(key)
        replicas = knowledge.replicas(key)
        names = {"directory-failed", "restarted"}
        self._write(
            "partition.offline",
            key,
            cause.value if cause.value in names else "broker-gone",
            {
                "isr": [] if held is None else list(held.isr),
                "replicas": list(replicas),
                "dead": [each for each in replicas if each not in knowledge.brokers],
                "failed": [
                    each
                    for each in replicas
                    if each in knowledge.brokers and not knowledge.serves(each, key)
                ],
                "leader_epoch": -1 if held is None else held.leader_epoch,
                "controller_epoch": self._epoch,
            },
        )

    def _write(self, event: str, key: TopicPartition, cause: str, data: dict[str, object]) -> None:
        self._note(Note(event, subjects.partition(*key), cause, data))


_STATES = {
    PartitionPhase.NEW: "NewPartition",
    PartitionPhase.ONLINE: "OnlinePartition",
    PartitionPhase.OFFLINE: "OfflinePartition",
}
