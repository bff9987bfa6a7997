"""The table of error codes: whole, and with the retry rules that clients rely on."""

from __future__ import annotations

import pytest

from barnabas.model.error_codes import ErrorCode


def test_the_codes_run_without_a_gap_from_minus_one_on() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 134))


def test_a_code_is_its_number() -> None:
    assert ErrorCode.NOT_COORDINATOR == 16
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert (ErrorCode.NONE).to_bytes(2, "big", signed=True) == b"\0\0"


@pytest.mark.parametrize("number", [-2, 134, 32767])
def test_an_unknown_number_reads_as_an_unknown_error(number: int) -> None:
    assert ErrorCode.of(number) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_known_number_reads_as_its_code() -> None:
    assert all(ErrorCode.of(int(code)) is code for code in ErrorCode)


def test_what_asks_for_new_metadata_is_retriable() -> None:
    for code in ErrorCode:
        assert code.retriable or not code.stale_metadata, code


@pytest.mark.parametrize(
    ("code", "retriable", "stale_metadata"),
    [
        (ErrorCode.NONE, False, False),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, True, True),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True, True),
        (ErrorCode.REQUEST_TIMED_OUT, True, False),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, True, False),
        (ErrorCode.MESSAGE_TOO_LARGE, False, False),
        (ErrorCode.INVALID_CONFIG, False, False),
        (ErrorCode.PRODUCER_FENCED, False, False),
    ],
)
def test_clients_know_what_to_try_again(
    code: ErrorCode, retriable: bool, stale_metadata: bool
) -> None:
    assert (code.retriable, code.stale_metadata) == (retriable, stale_metadata)


def test_every_code_says_what_it_means() -> None:
    assert all(code.meaning for code in ErrorCode)
