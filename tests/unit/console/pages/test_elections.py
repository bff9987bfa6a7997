"""Elections of all topics: what they would do, and what they did."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.broker import neighbours
from tests.unit.console.neighbourhood import House, play
from tests.unit.console.site import Site, text_of

from barnabas.admin.reassignments import alter_partition_reassignments
from barnabas.console.pages.elections import _effect
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.ids import TopicPartition


def test_where_all_is_well_there_is_nothing_to_elect(site: Site) -> None:
    site.create_topic("led", 2)
    page = site.page("/elections")
    assert "is led by its preferred replica." in page
    assert "/elections/elect" not in page
    assert "became the controller" in text_of(page)
    assert "needs none" in text_of(site.post("/elections/elect", {"kind": "preferred"}).text)
    assert "needs none" in text_of(site.post("/elections/elect", {"kind": "unclean"}).text)


@pytest.mark.parametrize("wrong", ["orders", "-1", "orders-x", "orders-9999999999"])
def test_a_partition_that_is_none_is_rejected(site: Site, wrong: str) -> None:
    answer = site.post("/elections/elect", {"partition": wrong, "confirmed": "yes"})
    assert answer.status_code == 400
    assert "is not TOPIC-N" in text_of(answer.text)


def test_the_preferred_replica_leads_after_its_election(tmp_path: Path) -> None:
    async def scenario(first: House, second: House) -> None:
        await neighbours.create(first.broker, NewTopic("both", 1, 2, {0: [0, 1]}))
        key = TopicPartition("both", 0)

        def leader() -> int:
            view = first.broker.cluster.topic("both")
            return -1 if view is None else view.partitions[0].leader

        def in_sync() -> int:
            view = first.broker.cluster.topic("both")
            return 0 if view is None else len(view.partitions[0].isr)

        await neighbours.until(lambda: in_sync() == 2, "both are in sync")
        # The same replicas in another order: the leader stays, but is no longer preferred.
        answers = await alter_partition_reassignments(first.client, {key: [1, 0]})
        assert list(answers.values()) == [None]
        await neighbours.until(
            lambda: second.broker.cluster.topic("both").partitions[0].replicas[0] == 1,  # type: ignore[union-attr]
            "the other is preferred",
        )
        if leader() == 0:
            [row] = await second.rows("/elections.json")
            assert (row["partition"], row["leader"], row["preferred"]) == ("both-0", 0, 1)
            assert row["election"] == "broker 1 becomes the leader"
            done = await second.do("/elections/elect", kind="preferred")
            assert "both-0: has its leader." in done
        await neighbours.until(
            lambda: second.broker.cluster.topic("both").partitions[0].leader == 1,  # type: ignore[union-attr]
            "it leads",
        )
        assert await second.rows("/elections.json") == []

    play(tmp_path, scenario, auto_leader_rebalance_enable="false")


@pytest.mark.parametrize(
    ("led", "in_sync", "alive", "text"),
    [
        (True, (1, 2), {1, 2}, "broker 1 becomes the leader"),
        (True, (2,), {1, 2}, "nothing: broker 1 is not in sync"),
        (True, (2,), {2}, "nothing: broker 1 is gone"),
        (False, (), {2}, "an unclean one: broker 2 leads with what it has"),
        (False, (1,), set(), "nothing: no replica is alive"),
    ],
)
def test_what_an_election_does(
    led: bool, in_sync: tuple[int, ...], alive: set[int], text: str
) -> None:
    assert _effect(led, 1, in_sync, (1, 2), alive) == text
