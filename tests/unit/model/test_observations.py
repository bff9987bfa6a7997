"""What is computed from observations."""

from __future__ import annotations

import logging

import pytest

from barnabas.model.observations import LogLine, RequestSeen


@pytest.mark.parametrize(
    ("level", "name"),
    [
        (logging.CRITICAL, "FATAL"),
        (logging.ERROR, "ERROR"),
        (logging.WARNING, "WARN"),
        (logging.WARNING - 1, "INFO"),
        (logging.DEBUG, "DEBUG"),
        (5, "TRACE"),
    ],
)
def test_levels_have_the_names_that_kafka_gives_them(level: int, name: str) -> None:
    assert LogLine(1, 0, level, "barnabas", "text").level_name == name


def test_a_request_took_the_time_of_its_phases_without_the_throttling_after_it() -> None:
    seen = RequestSeen(0, "Produce", 9, "app", "User:a", "h", 100, 1, 2, 4, 1000, 8, "")
    assert seen.total_ms == 15
