"""The tree of errors: what catches what, and what may be tried again."""

from __future__ import annotations

import inspect

import pytest

from barnabas.model import errors
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import (
    BarnabasError,
    ConfigError,
    CorruptRecordError,
    InvalidValueError,
    LocalProtocolError,
    ProtocolError,
    RemoteProtocolError,
    RequestError,
    StorageError,
)


def test_every_error_is_ours_and_in_the_picture() -> None:
    found = [
        error
        for _, error in inspect.getmembers(errors, inspect.isclass)
        if issubclass(error, Exception)
    ]
    assert len(found) == 14
    for error in found:
        assert issubclass(error, BarnabasError)
        assert error.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (ConfigError, (InvalidValueError, ValueError)),
        (LocalProtocolError, (ProtocolError,)),
        (RemoteProtocolError, (ProtocolError,)),
    ],
)
def test_an_error_is_caught_as_its_parents(
    error: type[Exception], parents: tuple[type[Exception], ...]
) -> None:
    for parent in parents:
        with pytest.raises(parent):
            raise error("told to")


def test_a_request_error_carries_its_code_and_says_what_it_means() -> None:
    plain = RequestError(ErrorCode.NOT_CONTROLLER)
    assert (plain.code, plain.message) == (ErrorCode.NOT_CONTROLLER, None)
    assert str(plain) == ErrorCode.NOT_CONTROLLER.meaning
    told = RequestError(ErrorCode.INVALID_CONFIG, "segment.bytes=1: too small")
    assert str(told) == told.message == "segment.bytes=1: too small"


def test_what_may_be_tried_again_says_so() -> None:
    assert RequestError(ErrorCode.NOT_CONTROLLER).retriable
    assert not RequestError(ErrorCode.INVALID_CONFIG).retriable
    assert StorageError("full").retriable
    assert not ConfigError("wrong").retriable


def test_corrupt_records_tell_the_producer_a_code() -> None:
    assert CorruptRecordError("crc").code is ErrorCode.CORRUPT_MESSAGE
    assert CorruptRecordError("key", ErrorCode.INVALID_RECORD).code is ErrorCode.INVALID_RECORD
