"""One exception class per error code, as Python's Kafka clients name and use them."""

from __future__ import annotations

import pickle

import pytest

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import (
    BarnabasError,
    CorruptRecordError,
    InvalidMetadataError,
    RequestError,
    RetriableError,
)
from barnabas.model.request_errors import (
    REQUEST_ERRORS,
    AuthorizationError,
    NotLeaderForPartitionError,
    TopicAuthorizationFailedError,
    UnknownError,
    request_error,
)


@pytest.mark.parametrize("code", [code for code in ErrorCode if code is not ErrorCode.NONE])
def test_every_code_has_a_class_that_agrees_with_the_table(code: ErrorCode) -> None:
    failure = request_error(code)
    kind = type(failure)
    assert kind is REQUEST_ERRORS[code]
    assert kind.errno == failure.errno == int(code)
    assert kind.message == failure.message == code.name
    assert kind.description == code.meaning == str(failure)
    assert failure.code is code
    assert isinstance(failure, RequestError)
    assert isinstance(failure, RetriableError) is failure.retriable is code.retriable
    assert isinstance(failure, InvalidMetadataError) is failure.invalid_metadata
    assert failure.invalid_metadata is code.stale_metadata


def test_a_message_takes_the_place_of_the_meaning() -> None:
    failure = NotLeaderForPartitionError("t-0 moved")
    assert (str(failure), failure.message, failure.errno) == ("t-0 moved", "t-0 moved", 6)
    assert NotLeaderForPartitionError.message == "NOT_LEADER_OR_FOLLOWER"


def test_an_unknown_code_keeps_its_number() -> None:
    failure = request_error(7777, "new")
    assert type(failure) is UnknownError
    assert str(failure) == "error code 7777: new"


def test_success_is_not_an_error() -> None:
    with pytest.raises(AssertionError):
        request_error(0)


def test_errors_can_be_sent_to_another_process() -> None:
    failure = pickle.loads(pickle.dumps(request_error(3, "no t")))
    assert (type(failure).__name__, str(failure)) == ("UnknownTopicOrPartitionError", "no t")


def test_families() -> None:
    assert issubclass(TopicAuthorizationFailedError, AuthorizationError)
    assert isinstance(request_error(2), CorruptRecordError)


def test_the_plain_error_of_brokers_tells_the_same() -> None:
    failure = RequestError(ErrorCode.UNKNOWN_TOPIC_ID, "gone")
    assert isinstance(failure, BarnabasError)
    assert (failure.errno, failure.description) == (100, ErrorCode.UNKNOWN_TOPIC_ID.meaning)
    assert failure.retriable
    assert failure.invalid_metadata
