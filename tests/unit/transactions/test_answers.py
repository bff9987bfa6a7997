"""Codes in the words of the request's version, and of an append that failed."""

import pytest

from barnabas.model.error_codes import ErrorCode
from barnabas.transactions.answers import (
    INIT_KNOWS_FENCED,
    OTHERS_KNOW_FENCED,
    append_failed,
    fenced_in_words_of,
    not_in_transaction,
)


@pytest.mark.parametrize("version", range(6))
def test_fenced_is_told_in_the_words_of_the_version(version: int) -> None:
    fenced = ErrorCode.PRODUCER_FENCED
    assert fenced_in_words_of(version, INIT_KNOWS_FENCED, fenced) == (90 if version >= 4 else 47)
    assert fenced_in_words_of(version, OTHERS_KNOW_FENCED, fenced) == (90 if version >= 2 else 47)
    other = ErrorCode.CONCURRENT_TRANSACTIONS
    assert fenced_in_words_of(version, OTHERS_KNOW_FENCED, other) is other


def test_older_brokers_are_told_of_an_invalid_state_instead_of_an_abortable_one() -> None:
    assert [not_in_transaction(version) for version in (4, 5)] == [48, 120]


@pytest.mark.parametrize(
    ("error", "told"),
    [(3, 15), (19, 15), (20, 15), (7, 15), (6, 16), (56, 16), (10, -1), (18, -1), (2, 2), (-1, -1)],
)
def test_a_failed_append_is_told_as_the_coordinators_failure(error: int, told: int) -> None:
    assert append_failed(ErrorCode.of(error)) == told
