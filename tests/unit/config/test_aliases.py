"""Aliases: options that say the same in several ways."""

from __future__ import annotations

from barnabas.config.aliases import ALIASES, aliases, to_ms
from barnabas.config.broker import BrokerOptions


def test_each_row_begins_with_its_name_and_ends_with_one_that_has_a_default() -> None:
    for name, row in ALIASES.items():
        assert row[0] == name
        assert all(alias in BrokerOptions.options for alias in row)
        defaults = [BrokerOptions.options[alias].default for alias in row]
        assert defaults[:-1] == [None] * (len(row) - 1)
        assert defaults[-1] is not None


def test_other_names_stand_alone() -> None:
    assert aliases("log.segment.bytes") == ("log.segment.bytes",)


def test_units_are_read_off_the_name() -> None:
    names = ("log.roll.hours", "log.retention.minutes", "log.roll.ms", "log.dir")
    assert [to_ms(name) for name in names] == [3_600_000, 60_000, 1, 1]
