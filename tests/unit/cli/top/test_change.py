"""Rates come from what two samples both know."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.cli.top.samples import sample, topic

from barnabas.cli.top.change import Change
from barnabas.cli.top.page import BYTES_IN, read_page
from barnabas.cli.top.sample import GroupSample
from barnabas.model.ids import TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
BEFORE = sample(10.0, {("orders", 0): 100, ("orders", 1): 50})
AFTER = sample(12.0, {("orders", 0): 300, ("orders", 1): 40})


def test_the_first_sample_has_no_rates() -> None:
    change = Change(None, AFTER)
    assert change.seconds is None
    assert change.written(P0) is None
    assert change.counted(BYTES_IN) is None
    assert change.requests() is None
    assert not change.has_all_pages


def test_two_samples_of_one_moment_have_no_rates() -> None:
    assert Change(BEFORE, replace(AFTER, at_s=10.0)).written(P0) is None


def test_what_falls_is_no_negative_rate() -> None:
    change = Change(BEFORE, AFTER)
    assert change.written(P0) == 100
    assert change.written(P1) == 0, "an unclean election"
    assert change.written(TopicPartition("orders", 2)) is None
    assert change.grown(P0) is None, "no sizes are known"


def test_a_recreated_topic_begins_anew() -> None:
    again = topic("orders", (1, (1,), (1,)), topic_id=b"z" * 16)
    change = Change(BEFORE, replace(AFTER, topics=(again,)))
    assert change.same_topics == set()
    assert change.written(P0) is None


def test_a_group_reads_as_fast_as_it_commits() -> None:
    first = replace(BEFORE, groups={"billing": GroupSample("Stable", {P0: 10, P1: 90})})
    last = replace(
        AFTER,
        groups={
            "billing": GroupSample("Stable", {P0: 50, P1: 20}),
            "new": GroupSample("Stable", {P0: 50}),
        },
    )
    change = Change(first, last)
    assert change.read("billing", P0) == 20
    assert change.read("billing", P1) == 0, "it was reset"
    assert change.read("billing", TopicPartition("orders", 2)) is None
    assert change.read("new", P0) is None


def test_counters_are_summed_over_brokers_and_survive_a_restart() -> None:
    def pages(*totals: int) -> dict[int, object]:
        return {
            number: read_page(f'{BYTES_IN} {total}\n{BYTES_IN}{{topic="orders"}} {total}\n')
            for number, total in enumerate(totals, 1)
        }

    first = replace(BEFORE, pages=pages(1000, 5000))  # type: ignore[arg-type]
    last = replace(AFTER, pages=pages(1600, 200))  # type: ignore[arg-type]
    change = Change(first, last)
    assert change.counted(BYTES_IN, broker=1) == 300
    assert change.counted(BYTES_IN, broker=2) == 100, "it restarted, and counts from 0"
    assert change.counted(BYTES_IN) == 400
    assert change.counted(BYTES_IN, topic="orders") == 400
    assert change.counted(BYTES_IN, topic="other") is None
    same = Change(first, replace(last, pages=first.pages))
    assert same.counted(BYTES_IN) is None, "a page that was repeated says nothing"
