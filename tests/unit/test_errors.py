"""`barnabas.errors` has every name of kafka-python's and aiokafka's, with the same meaning."""

from __future__ import annotations

import inspect
import warnings
from types import ModuleType

import aiokafka.errors
import pytest

from barnabas import errors

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of the way that kafka reads its files
    import kafka.errors


def names_of(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, BaseException) and not name.startswith("_")
    ]


@pytest.mark.parametrize("module", [kafka.errors, aiokafka.errors])
def test_every_name_is_there(module: ModuleType) -> None:
    missing = [name for name in names_of(module) if not hasattr(errors, name)]
    assert missing == []


@pytest.mark.parametrize("name", names_of(kafka.errors))
def test_numbers_and_families_are_those_of_kafka_python(name: str) -> None:
    theirs, ours = getattr(kafka.errors, name), getattr(errors, name)
    assert issubclass(ours, errors.KafkaError)
    errno = getattr(theirs, "errno", None)
    if errno is not None and name != "CorruptRecordError" and name != "CorruptRecordException":
        assert ours.errno == errno
        assert issubclass(ours, errors.BrokerResponseError)
    if issubclass(theirs, kafka.errors.AuthorizationError):
        assert issubclass(ours, errors.AuthorizationError)


def test_codes_find_their_classes() -> None:
    assert errors.for_code(0) is errors.NoError
    assert errors.for_code(6) is errors.NotLeaderForPartitionError
    assert errors.for_code(6) is errors.NotLeaderOrFollowerError
    assert errors.for_code(9999) is errors.UnknownError


def test_timeouts_of_requests_are_caught_by_both_names() -> None:
    failure = errors.RequestTimeoutError("late")
    assert isinstance(failure, errors.KafkaTimeoutError)
    assert isinstance(failure, errors.KafkaConnectionError)
    assert failure.retriable
    assert failure.invalid_metadata


def test_all_lists_what_there_is() -> None:
    for name in errors.__all__:
        assert hasattr(errors, name), name
    assert len(errors.__all__) == len(set(errors.__all__))
