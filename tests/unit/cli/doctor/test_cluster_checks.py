"""What brokers say of their cluster: each fault turns its check."""

from __future__ import annotations

import pytest
from tests.unit.cli.doctor.judged import Case, assert_judged

from barnabas.cli.doctor.cluster_checks import (
    Leaders,
    LogDir,
    MinIsr,
    Replication,
    SameVersions,
    Sick,
)
from barnabas.cli.doctor.finding import Severity
from barnabas.model.ids import TopicPartition

GREEN, AMBER, RED = Severity.GREEN, Severity.AMBER, Severity.RED

SICK = Sick(TopicPartition("orders", 3), (1,), (1, 2), "broker 2 stopped")
MANY = tuple(Sick(TopicPartition("t", number), (), (1,)) for number in range(5))
GIB = 1 << 30

CASES: dict[str, Case] = {
    "led": (Leaders(7, ()), GREEN, "7 partitions"),
    "leaderless": (Leaders(7, (SICK,)), RED, "orders-3 (ISR [1] of [1, 2]: broker 2 stopped)"),
    "many": (Leaders(7, MANY), RED, "t-2 (ISR [] of [1]) and 2 more"),
    "accepted": (MinIsr((), ()), GREEN, "no partition"),
    "rejected": (MinIsr((SICK,), ()), RED, "why partition orders-3"),
    "soon rejected": (MinIsr((), (SICK,)), AMBER, "one more broker stops"),
    "in sync": (Replication(3, (), ()), GREEN, "all in sync"),
    "lagging": (Replication(3, (SICK,), ()), AMBER, "orders-3"),
    "single": (Replication(3, (), ("a", "b")), AMBER, "2 topics with one replica: a, b"),
    "alone": (Replication(1, (), ("a",)), GREEN, "all in sync"),
    "the same": (SameVersions({1: {"Fetch": "0-17"}, 2: {"Fetch": "0-17"}}), GREEN, "2 brokers"),
    "older": (SameVersions({1: {"Fetch": "0-17"}, 2: {"Fetch": "0-12"}}), AMBER, "0-12"),
    "lacking": (SameVersions({1: {"Fetch": "0-17"}, 2: {}}), AMBER, "missing"),
    "space": (LogDir(1, "/d", 100 * GIB, 50 * GIB), GREEN, "50.0 GiB of 100.0 GiB"),
    "scarce": (LogDir(1, "/d", 100 * GIB, 14 * GIB), AMBER, "14.0 GiB"),
    "full": (LogDir(1, "/d", 100 * GIB, 4 * GIB), RED, "retention"),
    "offline": (LogDir(1, "/d", failure="offline"), RED, "disk"),
    "unsaid": (LogDir(1, "/d"), GREEN, "does not say"),
}


@pytest.mark.parametrize("name", CASES)
def test_facts_are_judged(name: str) -> None:
    assert_judged(CASES[name])
