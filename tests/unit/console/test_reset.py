"""Where a group's offsets are reset to; the page is tested with groups."""

from __future__ import annotations

import pytest
from tests.unit.console.site import Site

from barnabas.console.reset import Move, plan_reset
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

PARTITION = TopicPartition("reset", 0)


@pytest.fixture(scope="module", autouse=True)
def _topic(site: Site) -> None:
    site.create_topic("reset")
    site.produce("reset", *"abcdef")


@pytest.mark.parametrize(
    ("committed", "goal", "target"),
    [
        (3, "earliest", 0),
        (3, " latest ", 6),
        (3, "2", 2),
        (3, "700", 6),
        (3, "+2", 5),
        (3, "-100", 0),
        (3, "2000-01-01T00:00:00+02:00", 0),
        (3, "2100-01-01", 6),
        (None, "latest", 6),
    ],
)
def test_a_goal_is_an_offset_within_the_log(
    site: Site, committed: int | None, goal: str, target: int
) -> None:
    known = {} if committed is None else {PARTITION: committed}
    moves = site.run(plan_reset(site.client(), [PARTITION], known, goal))
    assert moves == [Move(PARTITION, committed, target)]


@pytest.mark.parametrize(
    ("committed", "goal", "text"),
    [
        (3, "", "is none of"),
        (3, "-", "is none of"),
        (3, "1.5", "is none of"),
        (3, "9" * 30, "is none of"),
        (None, "+1", "no committed offset to step from"),
    ],
)
def test_another_goal_is_rejected(site: Site, committed: int | None, goal: str, text: str) -> None:
    known = {} if committed is None else {PARTITION: committed}
    with pytest.raises(InvalidValueError, match=text):
        site.run(plan_reset(site.client(), [PARTITION], known, goal))


def test_its_effect_is_said() -> None:
    assert Move(PARTITION, 5, 5).effect == "stays"
    assert Move(PARTITION, 5000, 1).effect == "reads 4,999 offsets again"
    assert Move(PARTITION, 1, 3).effect == "skips 2 offsets"
    assert Move(PARTITION, None, 3).effect == "starts here"
