"""From our exceptions to librdkafka's errors."""

from __future__ import annotations

import ssl
from concurrent.futures import Future

import pytest

from barnabas.client.errors import (
    AuthenticationFailedError,
    CommitFailedError,
    ConnectionLostError,
    IllegalStateError,
    KafkaTimeoutError,
    NoBrokersAvailable,
)
from barnabas.compat.confluent_kafka import KafkaError, KafkaException
from barnabas.compat.confluent_kafka.failures import (
    UndeliveredError,
    error_of,
    settle,
    transaction_error_of,
)
from barnabas.model.error_codes import ErrorCode
from barnabas.model.request_errors import request_error


@pytest.mark.parametrize(
    ("failure", "name"),
    [
        (NoBrokersAvailable("x"), "_TRANSPORT"),
        (ConnectionLostError("x"), "_TRANSPORT"),
        (KafkaTimeoutError("x"), "_TIMED_OUT"),
        (TimeoutError("x"), "_TIMED_OUT"),
        (AuthenticationFailedError("x"), "_AUTHENTICATION"),
        (CommitFailedError("x"), "UNKNOWN_MEMBER_ID"),
        (IllegalStateError("x"), "_STATE"),
        (request_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "x"), "TOPIC_AUTHORIZATION_FAILED"),
        (UndeliveredError(KafkaError(KafkaError._PURGE_QUEUE)), "_PURGE_QUEUE"),
        (LookupError("x"), "_FAIL"),
    ],
)
def test_codes(failure: Exception, name: str) -> None:
    error = error_of(failure)
    assert error.name() == name
    assert "x" in error.str() or name == "_PURGE_QUEUE"


def test_texts_begin_as_those_of_librdkafka_do() -> None:
    error = error_of(KafkaTimeoutError("no response"), timed_out=KafkaError._MSG_TIMED_OUT)
    assert (error.name(), error.str()) == (
        "_MSG_TIMED_OUT",
        "Local: Message timed out: no response",
    )


def test_tls_is_told_from_logins() -> None:
    failure = AuthenticationFailedError("no TLS connection")
    failure.__cause__ = ssl.SSLError("unknown CA")
    assert error_of(failure).name() == "_SSL"


def test_errors_of_transactions() -> None:
    fenced = request_error(ErrorCode.PRODUCER_FENCED, "another producer")
    error = transaction_error_of(fenced, open_=True)
    assert (error.name(), error.fatal()) == ("_FENCED", True)
    denied = request_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "denied")
    assert transaction_error_of(denied, open_=True).txn_requires_abort()
    assert not transaction_error_of(denied, open_=False).txn_requires_abort()
    late = transaction_error_of(KafkaTimeoutError("late"), open_=True)
    assert (late.retriable(), late.txn_requires_abort()) == (True, False)


def test_futures_raise_what_describes_a_failure() -> None:
    for outcome in (KafkaTimeoutError("late"), KafkaException(KafkaError(KafkaError._TIMED_OUT))):
        future: Future[object] = Future()
        settle(future, outcome)
        with pytest.raises(KafkaException) as failure:
            future.result()
        assert failure.value.args[0].name() == "_TIMED_OUT"
        settle(future, 5)  # a second outcome changes nothing
    done: Future[object] = Future()
    settle(done, 5)
    assert done.result() == 5
