"""Moves of partitions: proposed within limits, started exactly as shown, cancelled."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.broker import neighbours
from tests.unit.broker.serving import batch_of, produce_request
from tests.unit.console.neighbourhood import House, play
from tests.unit.console.site import Site, confirmation, text_of

from barnabas.admin.reassignments import list_partition_reassignments
from barnabas.console.pages import moves
from barnabas.console.pages.moves import names_in, read, written
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.ids import TopicPartition


@pytest.mark.usefixtures("resting")
def test_where_nothing_moves_the_page_says_so(site: Site) -> None:
    assert "No partition is being moved." in site.page("/reassign")
    assert site.get("/reassign.json").json()["rows"] == []
    filled = site.page("/reassign?topic=resting&topic=other")
    assert 'value="resting other"' in filled
    answer = site.post("/reassign/start", {"topics": "resting"})
    assert "spread already" in text_of(answer.text)


@pytest.fixture
def resting(site: Site) -> None:
    """A topic whose replicas are where they should be."""
    if site.get("/topics/resting").status_code == 404:
        site.create_topic("resting", 2)


@pytest.mark.usefixtures("resting")
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"topics": ""}, "Name at least one topic."),
        ({"topics": "resting", "brokers": "7"}, "Broker 7 is not alive."),
        ({"topics": "resting", "brokers": "x"}, "Brokers: 'x' is not a whole number."),
        ({"topics": "resting", "throttle": "-1"}, "must be a number of bytes"),
        ({"move": "resting:0", "confirmed": "yes"}, "is not TOPIC:PARTITION"),
        ({"move": "resting:0:a", "confirmed": "yes"}, "is not TOPIC:PARTITION:BROKER,BROKER."),
    ],
)
def test_a_wrong_form_is_explained(site: Site, fields: dict[str, str], text: str) -> None:
    answer = site.post("/reassign/start", fields)
    assert answer.status_code == 400
    assert text in text_of(answer.text)


def test_what_does_not_exist_is_not_moved(site: Site) -> None:
    for fields in ({"topics": "absent"}, {"move": "absent:0:0", "confirmed": "yes"}):
        assert site.post("/reassign/start", fields).status_code in (404, 409)


def test_too_large_a_plan_is_for_the_command(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "PARTITIONS_MAX", 1)
    site.create_topic("wide", 2)
    answer = site.post("/reassign/start", {"topics": "wide"})
    assert answer.status_code == 400
    assert "have 2 partitions; the console moves 1 at a time" in text_of(answer.text)


def test_a_plan_is_carried_out_as_it_was_shown(tmp_path: Path) -> None:
    async def scenario(first: House, second: House) -> None:
        await neighbours.create(first.broker, NewTopic("heavy", 2, 1, {0: [0], 1: [0]}))
        await neighbours.until(lambda: second.broker.cluster.topic("heavy"), "both know it")
        shown = await second.preview("/reassign/start", topics="heavy", throttle="1000000")
        text = text_of(shown.text)
        assert "Broker 1 receives" in text
        assert "With 1.0 MB a second" in text
        assert "barnabas reassign generate --topic heavy --brokers 0,1" in text
        _, fields = confirmation(shown.text)
        [move] = [value for name, value in fields if name == "move"]
        key, target = read(move)
        assert target == (1,)
        done = await second.do("/reassign/start", topics="heavy", throttle="1000000")
        assert f"{key}: its move has started." in done

        def replicas() -> tuple[int, ...]:
            view = first.broker.cluster.topic("heavy")
            return tuple(view.partitions[key.partition].replicas) if view is not None else ()

        await neighbours.until(lambda: replicas() == (1,), "it has moved")
        while await list_partition_reassignments(first.client):
            pass
        text = await second.do("/reassign/unthrottle", topics="heavy")
        assert "Limits: removed." in text
        assert "Limits: there were none." in await second.do("/reassign/unthrottle", topics="heavy")

    play(tmp_path, scenario)


def test_a_move_that_lasts_is_watched_and_cancelled(tmp_path: Path) -> None:
    async def scenario(first: House, second: House) -> None:
        await neighbours.create(first.broker, NewTopic("slow", 1, 1, {0: [0]}))
        await neighbours.until(lambda: second.broker.cluster.topic("slow"), "both know it")
        door = first.console._door
        for _ in range(5):
            request = produce_request("slow", batch_of([bytes(900)]))
            await door.ask(door.anonymous("127.0.0.1"), request, version=9)
        done = await first.do("/reassign/start", topics="slow", brokers="1", throttle="1")
        assert "slow-0: its move has started." in done
        [row] = await second.rows("/reassign.json")
        assert (row["topic"], row["partition"], row["target"]) == ("slow", 0, "1")
        assert row["copied"] < row["whole"]  # type: ignore[operator]
        assert "slow" in await first.page("/brokers/1"), "it arrives there"
        busy = await first.preview("/reassign/start", topics="slow")
        assert busy.status_code == 409
        assert "slow-0: wait for them, or cancel them" in text_of(busy.text)
        shown = await second.preview("/reassign/cancel", topics="another")
        assert "slow" not in text_of(shown.text)
        shown = await second.preview("/reassign/cancel")
        assert "slow 0 1" in text_of(shown.text)
        assert "slow-0: cancelled." in await second.do("/reassign/cancel", topics="slow")
        assert await first.rows("/reassign.json") == []
        assert "Limits: there were none." in await first.do("/reassign/unthrottle", topics="slow")

    play(tmp_path, scenario, replica_fetch_max_bytes="1000")


def test_a_form_carries_targets_as_text() -> None:
    key = TopicPartition("a:b", 3)
    assert read(written(key, (1, 2))) == (key, (1, 2))
    assert names_in(" a, b  a\nc ") == ["a", "b", "c"]
    assert names_in("", required=False) == []
