"""From our exceptions to librdkafka's errors."""

from __future__ import annotations

from concurrent.futures import Future
from ssl import SSLError
from typing import Any

from barnabas.client.errors import (
    AuthenticationFailedError,
    CommitFailedError,
    IllegalStateError,
    KafkaTimeoutError,
    LogTruncationError,
    NetworkError,
    NoOffsetForPartitionError,
    TransactionAbortedError,
)
from barnabas.compat.confluent_kafka.error import KafkaError, KafkaException
from barnabas.compat.confluent_kafka.error_codes import text_of
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, InvalidValueError, RequestError
from barnabas.producer.transaction import FATAL

_LOCAL: tuple[tuple[type[Exception], int], ...] = (  # the first that fits
    (AuthenticationFailedError, KafkaError._AUTHENTICATION),
    (KafkaTimeoutError, KafkaError._TIMED_OUT),
    (NetworkError, KafkaError._TRANSPORT),
    (CommitFailedError, KafkaError.UNKNOWN_MEMBER_ID),
    (NoOffsetForPartitionError, KafkaError._AUTO_OFFSET_RESET),
    (LogTruncationError, KafkaError._LOG_TRUNCATION),
    (TransactionAbortedError, KafkaError._PURGE_QUEUE),
    (IllegalStateError, KafkaError._STATE),
    (InvalidValueError, KafkaError._INVALID_ARG),
    (TimeoutError, KafkaError._TIMED_OUT),
)


class UndeliveredError(BarnabasError):
    """A message was not delivered, for a reason that librdkafka has a code for."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error.str())
        self.error = error


def error_of(failure: BaseException, timed_out: int = KafkaError._TIMED_OUT) -> KafkaError:
    """Return the error that describes an exception; `timed_out` is the code of a timeout."""
    if isinstance(failure, UndeliveredError):
        return failure.error
    retriable = bool(getattr(failure, "retriable", False))
    for kind, code in _LOCAL:
        if isinstance(failure, kind):
            if code == KafkaError._TIMED_OUT:
                code = timed_out
            elif isinstance(failure.__cause__, SSLError):
                code = KafkaError._SSL
            return KafkaError(code, f"{text_of(code)}: {failure}", retriable=retriable)
    if isinstance(failure, RequestError):
        return KafkaError(int(failure.code), f"Broker: {failure}", retriable=retriable)
    return KafkaError(KafkaError._FAIL, f"{text_of(KafkaError._FAIL)}: {failure!r}")


def transaction_error_of(failure: BaseException, *, open_: bool) -> KafkaError:
    """Return the error of a transactional call; `open_`: a transaction can still be aborted."""
    if isinstance(failure, RequestError) and failure.code in FATAL:
        code = int(failure.code)
        if failure.code is ErrorCode.PRODUCER_FENCED:
            code = KafkaError._FENCED
        return KafkaError(code, str(failure), fatal=True)
    error = error_of(failure)
    abortable = open_ and not isinstance(failure, (KafkaTimeoutError, IllegalStateError))
    return KafkaError(
        error.code(), error.str(), retriable=error.retriable(), txn_requires_abort=abortable
    )


def exception_of(failure: BaseException) -> KafkaException:
    """Return what a call raises for an exception of ours."""
    raised = KafkaException(error_of(failure))
    raised.__cause__ = failure
    return raised


def invalid(reason: str) -> KafkaException:
    """Return what an invalid option or argument raises."""
    return KafkaException(KafkaError(KafkaError._INVALID_ARG, reason))


def settle(future: Future[Any], outcome: object) -> None:
    """Give a future a result, or the exception that describes a failure."""
    if future.done():
        return
    if isinstance(outcome, KafkaException):
        future.set_exception(outcome)
    elif isinstance(outcome, BaseException):
        future.set_exception(exception_of(outcome))
    else:
        future.set_result(outcome)
