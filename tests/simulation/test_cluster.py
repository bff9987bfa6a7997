"""Clusters of three to five brokers under one seed: what was promised is kept, whatever happens.

Brokers lose their power, are killed, paused, cut off from each other, from clients or from the
coordination service (one way or both), lose their sessions and shut down in order, the service
itself is away for a while, while topics are made and deleted, replicas move and leaders are
elected. Meanwhile an idempotent producer with acks=all, readers, a group that commits, a producer
of transactions and clients that ask whoever once led are at work. See `cluster/`.

- No acknowledged record is lost, no offset ever has two values, none appears twice.
- What readers were shown stays, and the end that a leader tells does not go back.
- A partition has one leader per epoch, the cluster one controller per epoch.
- Committed offsets do not go back; transactions are seen whole or not at all.
- Once a newer leader or coordinator has acknowledged something, none that lost its session answers
  any more, beyond a bound of a second.
- While the coordination service is away for all, records are acknowledged, and nobody is silent.
- When all is mended the cluster comes to rest: every replica in sync, all logs equal to the byte.

A failure names the seed: `run_history(seed)` lives through the same events again.
`BARNABAS_CHAOS_SEEDS` asks for more histories than the suite runs.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from tests.simulation.cluster.brokers import WatchedBroker
from tests.simulation.cluster.faults import Kind
from tests.simulation.cluster.history import FAR, History, Range, run_history

from barnabas.broker.broker import Broker
from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.cluster.silence import Silence
from barnabas.broker.coordinators.groups import GroupHost
from barnabas.controller import partitions
from barnabas.controller.election import Elected
from barnabas.controller.leadership import Leadership
from barnabas.log.partition_log import Appended
from barnabas.replication.partition import Partition
from barnabas.replication.standing import Standing

SEEDS = int(os.environ.get("BARNABAS_CHAOS_SEEDS", "60"))
WORKERS = 6
"""Seeds are run in a few tests, so that several workers share them."""

MUTANT_SEEDS = 40
"""Within how many histories a broken rule must show."""


def lived(seed: int, kind: Kind | None = None, latency_ms: Range | None = None) -> History:
    """Live through a history; whatever is raised names its seed."""
    try:
        return run_history(seed, kind, latency_ms)
    except BaseException as failure:
        failure.add_note(f"seed {seed}")
        raise


@pytest.mark.parametrize("worker", range(WORKERS))
def test_a_cluster_keeps_its_promises(worker: int) -> None:
    acknowledged = transactions = epochs = controllers = offsets = 0
    broken = {}
    for seed in range(worker, SEEDS, WORKERS):
        history = lived(seed)
        if history.complaints:
            broken[f"seed {seed} ({history.kind.name})"] = history.complaints
        acknowledged += history.acknowledged
        transactions += history.transactions
        epochs += history.epochs
        controllers += history.controllers
        offsets += history.offsets_shown
    assert broken == {}
    assert acknowledged > 0
    assert transactions > 0
    assert epochs > 0
    assert controllers > 0
    assert offsets > 0


def test_brokers_that_were_deposed_are_asked_and_refuse() -> None:
    refusals = 0
    for seed in range(200, 215):
        history = lived(seed, Kind.SEVERED)
        assert history.complaints == [], f"seed {seed}"
        refusals += history.refusals
    assert refusals > 0, "otherwise nothing was tried"


def test_a_coordination_service_that_is_away_stops_nothing() -> None:
    acknowledged = 0
    for seed in range(200, 210):
        history = lived(seed, Kind.UNCOORDINATED)
        assert history.complaints == [], f"seed {seed}"
        acknowledged += history.away_acknowledged
    assert acknowledged > 0


def test_brokers_that_log_in_to_each_other_keep_their_promises() -> None:
    """By SCRAM, over and over, with ACLs: whatever happens, nobody is locked out in the end.

    Each login computes the hash of a password, so that there are few of these histories.
    """
    for seed in range(300, 300 + max(1, SEEDS // 60)):
        history = run_history(seed, secured=True)
        assert history.complaints == [], f"seed {seed}"
        assert history.acknowledged > 0


def test_one_seed_replays_one_run() -> None:
    first, again, other = (lived(seed).digest for seed in (4, 4, 7))
    assert first == again
    assert first != other


def complaint_of(kind: Kind, first: int, says: str = "") -> str | None:
    """Return the first complaint of some histories, all of one kind, that says something."""
    for seed in range(first, first + MUTANT_SEEDS):
        history = lived(seed, kind, FAR)  # where there is more time for things to go wrong
        for complaint in history.complaints:
            if says in complaint:
                return complaint
    return None


def test_a_watermark_that_ignores_followers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are acknowledged that only the leader has; when it falls, they are gone."""
    append = Partition.append

    def append_and_show(partition: Partition, *arguments: Any, **named: Any) -> Appended:
        appended = append(partition, *arguments, **named)
        partition.log.set_high_watermark(partition.log.log_end_offset)
        return appended

    monkeypatch.setattr(Partition, "append", append_and_show)
    assert complaint_of(Kind.WRITTEN, 14) is not None


def test_in_sync_replicas_that_lost_records_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was in sync stays in sync, although its disk has lost what it had."""

    async def trust(_: partitions.Partitions, known: object) -> None:
        """Account for nobody's new life."""

    monkeypatch.setattr(partitions.Partitions, "account_for_lives", trust)
    assert complaint_of(Kind.REPLICATED, 0) is not None


def test_leaders_from_outside_of_the_isr_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def elect(
        replicas: Sequence[int], present: Leadership, alive: Collection[int]
    ) -> Elected | None:
        leader = next((each for each in reversed(replicas) if each in alive), None)
        return None if leader is None else Elected(leader, (leader,))

    monkeypatch.setattr(partitions, "elect_in_sync", elect)
    assert complaint_of(Kind.WRITTEN, 80) is not None


def test_brokers_that_answer_without_a_session_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Silence, "look", lambda _: None)
    complaint = complaint_of(Kind.SEVERED, 0)
    assert complaint is not None
    assert "after a newer leader" in complaint


def test_old_offsets_of_coordinators_without_a_session_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Silence, "look", lambda _: None)
    assert complaint_of(Kind.SEVERED, 12, "for plain, after") is not None


def test_coordinators_that_forget_offsets_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes over begins with nothing, although the log has all that was committed."""
    monkeypatch.setattr(GroupHost, "_replay", lambda *_: None)
    assert complaint_of(Kind.SEVERED, 0, "the offset of plain went from") is not None


def test_brokers_that_believe_nobody_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """They fall silent as soon as their leases end, also when nobody can take their place."""
    monkeypatch.setattr(Standing, "answered", lambda *_: None)
    complaint = complaint_of(Kind.UNCOORDINATED, 0)
    assert complaint is not None
    assert "falls silent although nobody can be elected" in complaint


def test_two_controllers_of_one_epoch_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = ControllerHost._begin

    async def begin_first(host: ControllerHost, epoch: int, version: int) -> None:
        await begin(host, 1, version)

    monkeypatch.setattr(ControllerHost, "_begin", begin_first)
    complaint = complaint_of(Kind.SEVERED, 0)
    assert complaint is not None
    assert "are controllers in epoch 1" in complaint


def test_a_watched_broker_overrides_what_brokers_have() -> None:
    """An override of what is no longer called would see nothing."""
    own = {name for name in vars(WatchedBroker) if not name.startswith("_")}
    assert own - {"watch_answers"} <= set(vars(Broker))
