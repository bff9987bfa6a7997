"""A task reports its failures as what they are: retriable or final, fenced or not."""

from __future__ import annotations

import pickle

import pytest

from barnabas.client.errors import KafkaTimeoutError
from barnabas.mirror.failures import TaskFailure
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, InvalidValueError
from barnabas.model.request_errors import request_error


@pytest.mark.parametrize(
    ("failure", "retriable", "fenced"),
    [
        (request_error(ErrorCode.NOT_LEADER_OR_FOLLOWER), True, False),
        (request_error(ErrorCode.INVALID_TXN_STATE), True, False),
        (request_error(ErrorCode.PRODUCER_FENCED), False, True),
        (request_error(ErrorCode.MESSAGE_TOO_LARGE), False, False),
        (KafkaTimeoutError("late"), True, False),
        (InvalidValueError("wrong"), False, False),
    ],
)
def test_a_failure_is_described(failure: BarnabasError, retriable: bool, fenced: bool) -> None:
    described = TaskFailure.of(failure)
    assert (described.retriable, described.fenced) == (retriable, fenced)
    assert pickle.loads(pickle.dumps(described)) == described


def test_the_text_has_the_code_and_the_notes() -> None:
    failure = request_error(ErrorCode.MESSAGE_TOO_LARGE, "orders-0")
    failure.add_note("see max.message.bytes")
    assert TaskFailure.of(failure).text == "orders-0 (MESSAGE_TOO_LARGE); see max.message.bytes"
