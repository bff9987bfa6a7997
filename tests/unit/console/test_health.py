"""Sentences about what is wrong."""

from __future__ import annotations

from dataclasses import replace

from barnabas.console.health import TopicTotals, findings
from barnabas.console.window import Directory, Health, Sample

FINE = Health((), (), 0, 0, 0, 6, 2, 1, False)
TOTALS = TopicTotals(2, 6, 0, (), 0, ())
DISK = Directory("/data", 1000, 500, True)
QUIET = Sample(0, 0, 0, 0, 0, 0, 0, 1.0, 0.1)


def levels(totals: TopicTotals = TOTALS, health: Health = FINE, *more: object) -> list[str]:
    directories = [each for each in more if isinstance(each, Directory)] or [DISK]
    history = [each for each in more if isinstance(each, Sample)]
    return [f"{each.level}: {each.text}" for each in findings(totals, health, directories, history)]


def test_nothing_wrong_is_one_good_sentence() -> None:
    assert levels() == [
        "good: Nothing is wrong: 6 partitions of 2 topics, all with a leader and all replicas in "
        "sync."
    ]


def test_each_problem_has_a_sentence_and_the_worst_come_first() -> None:
    totals = TopicTotals(5, 9, 1, ("a",), 7, ("b", "c", "d", "e", "f"))
    assert levels(totals, replace(FINE, controller_id=-1, silent=True)) == [
        "bad: This broker has lost its cluster, and serves none of its partitions.",
        "bad: The cluster has no controller.",
        "bad: 1 partition without a leader, in a.",
        "warn: 7 partitions with fewer in-sync replicas than replicas, in b, c, d and 2 more "
        "topics.",
    ]


def test_disks_that_are_full_or_gone() -> None:
    assert levels(TOTALS, FINE, replace(DISK, free_bytes=149)) == [
        "warn: The disk of /data has 15% free."
    ]
    assert levels(TOTALS, FINE, replace(DISK, free_bytes=49)) == [
        "bad: The disk of /data has 5% free."
    ]
    assert levels(TOTALS, FINE, replace(DISK, online=False)) == [
        "bad: Data directory /data is offline."
    ]
    assert levels(TOTALS, FINE, replace(DISK, total_bytes=0, free_bytes=0))[0].startswith("good")


def test_a_loop_that_stood_still_or_is_busy() -> None:
    slow, busy = replace(QUIET, loop_lag_ms=300.0), replace(QUIET, busy=0.9)
    assert levels(TOTALS, FINE, QUIET, slow) == [
        "warn: This broker's event loop stood still for 300 ms in the last minute."
    ]
    assert levels(TOTALS, FINE, busy, busy) == [
        "warn: This broker's event loop was busy 90% of the last minute."
    ]
    assert levels(TOTALS, FINE, slow, *[QUIET] * 12)[0].startswith("good"), "it is over"


def test_every_problem_has_advice() -> None:
    totals = TopicTotals(5, 9, 1, ("a",), 1, ("b",))
    found = findings(totals, replace(FINE, controller_id=-1), [replace(DISK, online=False)], [])
    assert len(found) == 4
    assert all(each.advice for each in found)


def test_groups_that_are_far_behind_are_named_the_worst_first() -> None:
    behind = [("a", 7200.0), ("b\u202e", 300.0), ("c", 100.0), ("d", 61.0)]
    [found] = findings(TOTALS, FINE, [DISK], [], behind)
    assert found.level == "warn"
    assert found.text == (
        "4 groups far behind: a (2 h), b⟨U+202E⟩ (5 min), c (1 min 40 s) and 1 more."
    )
    assert found.link == "/groups"
    [found] = findings(TOTALS, FINE, [DISK], [], [("a/b", 90.0)])
    assert found.text == "1 group far behind: a/b (1 min 30 s)."
    assert found.link == "/groups/a%2Fb"


def test_partitions_that_reject_producers() -> None:
    assert levels(TOTALS, replace(FINE, under_min_isr_count=1)) == [
        "bad: 1 partition led by this broker with fewer in-sync replicas than min.insync.replicas."
    ]
