"""Limits of quotas: what the tree has, what is wrong with one, and how it is written."""

from __future__ import annotations

import pytest

from barnabas.quotas.quota_keys import check_limit, limit_text, parse_limit


@pytest.mark.parametrize(
    ("key", "text", "limit"),
    [
        ("producer_byte_rate", "1000", 1000.0),
        ("request_percentage", "12.5", 12.5),
        ("producer_byte_rate", None, None),
        ("producer_byte_rate", "much", None),
        ("producer_byte_rate", "0", None),
        ("producer_byte_rate", "-1", None),
        ("producer_byte_rate", "1.5", None),
        ("request_percentage", "nan", None),
        ("request_percentage", "inf", None),
    ],
)
def test_what_the_tree_has(key: str, text: str | None, limit: float | None) -> None:
    assert parse_limit(key, text) == limit


def test_what_is_wrong_names_the_key_and_the_bound() -> None:
    assert check_limit("consumer_byte_rate", 0) == "consumer_byte_rate=0: must be above 0"
    wrong = check_limit("consumer_byte_rate", 1.5)
    assert wrong == "consumer_byte_rate=1.5: must be a whole number"
    assert check_limit("controller_mutation_rate", 1.5) is None


def test_whole_numbers_are_written_without_a_fraction() -> None:
    assert limit_text("producer_byte_rate", 1e9) == "1000000000"
    assert limit_text("controller_mutation_rate", 3) == "3.0"
