"""auto.offset.reset says where to start; nonsense is refused by name."""

from __future__ import annotations

import pytest

from barnabas.consumer.reset import ResetPolicy, parse_reset
from barnabas.model.errors import ConfigError
from barnabas.model.ids import EARLIEST, LATEST


@pytest.mark.parametrize(
    ("text", "asked"),
    [("earliest", EARLIEST), ("LATEST", LATEST), ("smallest", EARLIEST), (" largest ", LATEST)],
)
def test_ends_of_the_log(text: str, asked: int) -> None:
    """The names of the two ends ask for the two ends."""
    assert parse_reset(text).timestamp(1_000) == asked


@pytest.mark.parametrize(
    ("text", "age_ms"),
    [
        ("by_duration:PT1H", 3_600_000),
        ("by_duration:P1D", 86_400_000),
        ("by_duration:P1DT2H3M4.5S", 86_400_000 + 7_200_000 + 180_000 + 4_500),
        ("by_duration:pt0.001s", 1),
    ],
)
def test_by_duration(text: str, age_ms: int) -> None:
    """A duration is counted back from now, and never to before 1970."""
    policy = parse_reset(text)
    assert policy.timestamp(1_000_000_000_000) == 1_000_000_000_000 - age_ms
    assert policy.timestamp(0) == 0


def test_none_gives_up() -> None:
    """With none there is no way, so somebody must be told."""
    assert parse_reset("none").gives_up
    assert not ResetPolicy.LATEST.gives_up


@pytest.mark.parametrize(
    "text", ["", "oldest", "by_duration:", "by_duration:PT", "by_duration:-PT1S"]
)
def test_nonsense_is_refused(text: str) -> None:
    """What cannot be read is refused with the option's name and the value."""
    with pytest.raises(ConfigError, match=f"auto.offset.reset={text}: must be earliest"):
        parse_reset(text)
