"""Names on the way from one cluster to the other, and back."""

from __future__ import annotations

from barnabas.mirror.marks import as_marks
from barnabas.mirror.positions import Position
from barnabas.mirror.route import Route
from barnabas.model.ids import TopicPartition

PLACE = TopicPartition("orders", 3)


def test_names_go_there_and_back() -> None:
    for prefix in ("", "old."):
        route = Route("s", "t", "barnabas-mirror.m", prefix)
        assert route.target_of(PLACE) == TopicPartition(f"{prefix}orders", 3)
        assert route.source_of(route.target_of(PLACE)) == PLACE


def test_another_topic_of_the_target_comes_from_nowhere() -> None:
    assert Route("s", "t", "barnabas-mirror.m", "old.").source_of(PLACE) is None


def test_a_mark_says_what_a_position_says() -> None:
    route = Route("s", "t", "barnabas-mirror.m", "old.")
    marks = as_marks(route, {PLACE: Position(17, "id")})
    [(place, mark)] = marks.items()
    assert (place, mark.offset, mark.metadata) == (TopicPartition("old.orders", 3), 17, "id")
