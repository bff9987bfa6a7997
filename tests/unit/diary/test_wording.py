"""Durations, sizes and names as people write them."""

from __future__ import annotations

import pytest

from barnabas.diary.wording import by, counted, listed, moment, size, span


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (119_900, "119.9 s"),
        (120_000, "2 min"),
        (7_200_000, "2.0 h"),
        (172_800_000, "2.0 days"),
    ],
)
def test_a_duration_has_the_unit_that_fits(milliseconds: float, text: str) -> None:
    assert span(milliseconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1 << 20, "1.0 MiB"),
        (1 << 30, "1.0 GiB"),
        (1 << 40, "1.0 TiB"),
        (1 << 51, "2048.0 TiB"),
    ],
)
def test_a_size_has_the_unit_that_fits(count: int, text: str) -> None:
    assert size(count) == text


def test_a_moment_is_in_utc() -> None:
    assert moment(1_700_000_000_999) == "2023-11-14 22:13:20 UTC"


def test_names_and_numbers_of_things() -> None:
    assert listed([3, 1]) == "3, 1"
    assert listed([]) == "none"
    assert counted(1, "member") == "1 member"
    assert counted(0, "member") == "0 members"
    assert counted(1200, "record") == "1,200 records"


@pytest.mark.parametrize(
    ("data", "who"),
    [
        ({"principal": "User:ann", "client_id": "app", "host": "10.0.0.7"}, "User:ann at 10.0.0.7"),
        ({"client_id": "app"}, "app"),
        ({"host": "10.0.0.7"}, "a client at 10.0.0.7"),
    ],
)
def test_the_principal_is_named_before_the_client(data: dict[str, str], who: str) -> None:
    assert by(data) == who
