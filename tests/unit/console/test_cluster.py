"""The whole cluster from each broker's console: what others know is asked there."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.unit.broker import neighbours
from tests.unit.console.neighbourhood import House, play

from barnabas.admin.group_offsets import commit_offsets
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.ids import TopicPartition
from barnabas.model.note import Note


async def far_topic(first: House, second: House) -> None:
    """Create a topic that the second broker alone has."""
    await neighbours.create(first.broker, NewTopic("far", 1, 1, {0: [1]}))
    key = TopicPartition("far", 0)
    await neighbours.until(
        lambda: key in second.broker.partitions and second.broker.partitions[key].is_leader,
        "the second leads it",
    )
    await neighbours.until(lambda: first.broker.cluster.topic("far"), "the first knows it")


def test_lists_and_pages_are_the_same_from_each_broker(tmp_path: Path) -> None:
    async def scenario(first: House, second: House) -> None:
        await far_topic(first, second)
        outcomes = await commit_offsets(first.client, "billing", {TopicPartition("far", 0): 0})
        assert list(outcomes.values()) == [None]
        for house in (first, second):
            assert [row["name"] for row in await house.rows("/brokers.json")] == [0, 1]
            [far] = await house.rows("/topics.json?q=far")
            assert (far["partitions"], far["offsets"], far["bytes"]) == (1, 0, 0)
            [partition] = await house.rows("/topics/far/partitions.json")
            assert (partition["leader"], partition["end"], partition["bytes"]) == (1, 0, 0)
            [group] = await house.rows("/groups.json?q=bill")
            assert (group["state"], group["lag"]) == ("Empty", 0)
            assert "far" in await house.page("/groups/billing")
            other = 1 - house.broker.broker_id
            page = await house.page(f"/brokers/{other}")
            assert f"open the console of broker {other}" in page
            assert str(tmp_path / str(other)) in page, "its directories were asked for"
            assert "broker 1 leads in epoch 0" in await house.page("/why?of=partition&name=far-0")

    play(tmp_path, scenario)


def test_a_broker_that_is_gone_is_named_and_what_it_had_has_no_leader(tmp_path: Path) -> None:
    async def scenario(first: House, second: House) -> None:
        await far_topic(first, second)
        await second.broker.stop()
        await neighbours.until(
            lambda: first.broker.cluster.topic("far").partitions[0].leader < 0,  # type: ignore[union-attr]
            "it has no leader",
        )
        await first.console.window.look()
        page = await first.page("/")
        assert "1 partition without a leader, in far." in page
        [row] = await first.rows("/elections.json")
        assert (row["partition"], row["leader"], row["preferred"]) == ("far-0", None, 1)
        assert row["election"] == "nothing: no replica is alive"
        shown = await first.preview("/elections/elect", kind="unclean")
        assert "Unclean election" in shown.text
        assert "barnabas elect --all --unclean" in shown.text
        assert (await first.browser.get("/brokers/1")).status_code == 404
        assert "not alive; it has 1 replica" in await first.page("/why?of=broker&name=1")

    play(tmp_path, scenario)


def test_the_diary_is_that_of_the_cluster(tmp_path: Path) -> None:
    """The first has the diary's topic, so the second reads it from there."""

    async def scenario(first: House, second: House) -> None:
        made = await first.preview("/topics", name="noted", partitions="1")
        assert made.status_code == 303
        # The diary gets its topic with the first entry that does not belong to every start.
        denied = Note("reject.authorization", "client:app@10.0.0.7", "no-rule", {"resource": "T"})
        second.broker.journal.note(denied)

        async def brokers(house: House, text: str) -> set[object]:
            return {row["broker"] for row in await house.rows(f"/diary.json?q={text}")}

        for house, text, writer in ((first, "10.0.0.7", 1), (second, "noted", 0)):
            async with asyncio.timeout(60):
                while await brokers(house, text) != {writer}:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            assert "may be missing" not in await house.page(f"/diary?q={text}")
            assert text in await house.page("/")
        question = "/why?of=client&amp;name=app%4010.0.0.7"
        assert f'href="{question}"' in await first.source("/diary?q=10.0")
        answer = await first.page(question.replace("&amp;", "&"))
        assert "not throttled; the last entry is" in answer

    play(tmp_path, scenario, barnabas_diary_enable="true")
