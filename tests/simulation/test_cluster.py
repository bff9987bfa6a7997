"""Clusters of three to five brokers under one seed: what was promised is kept, whatever happens.

Brokers lose their power, are killed, paused, cut off from each other, from clients or from the
coordination service (one way or both), lose their sessions and shut down in order, while topics
are made and deleted, replicas move and leaders are elected. Meanwhile an idempotent producer with
acks=all, readers, a group that commits and a producer of transactions are at work. See `cluster/`.

- No acknowledged record is lost, no offset ever has two values, none appears twice.
- What readers were shown stays, and the end that a leader tells does not go back.
- A partition has one leader per epoch, the cluster one controller per epoch.
- Committed offsets do not go back; transactions are seen whole or not at all.
- When all is mended the cluster comes to rest: every replica in sync, all logs equal to the byte.

A failure names the seed: `run_history(seed)` lives through the same events again.
`BARNABAS_CHAOS_SEEDS` asks for more histories than the suite runs.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from tests.simulation.cluster.faults import Kind
from tests.simulation.cluster.history import FAR, History, Range, run_history

from barnabas.controller import partitions
from barnabas.controller.election import Elected
from barnabas.controller.leadership import Leadership
from barnabas.log.partition_log import Appended
from barnabas.replication.partition import Partition

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
    acknowledged = transactions = epochs = 0
    for seed in range(worker, SEEDS, WORKERS):
        history = lived(seed)
        assert history.complaints == [], f"seed {seed} ({history.kind.name})"
        acknowledged += history.acknowledged
        transactions += history.transactions
        epochs += history.epochs
    assert acknowledged > 0
    assert transactions > 0
    assert epochs > 0


def test_one_seed_replays_one_run() -> None:
    first, again, other = (lived(seed).digest for seed in (4, 4, 7))
    assert first == again
    assert first != other


def complaint_of(kind: Kind, first: int) -> str | None:
    """Return the first complaint of some histories, all of one kind."""
    for seed in range(first, first + MUTANT_SEEDS):
        history = lived(seed, kind, FAR)  # where there is more time for things to go wrong
        if history.complaints:
            return history.complaints[0]
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
