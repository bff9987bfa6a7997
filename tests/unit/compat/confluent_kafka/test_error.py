"""`KafkaError`: a code with its name, reason and flags."""

from __future__ import annotations

import pickle

import pytest

from barnabas.compat.confluent_kafka import KafkaError, KafkaException
from barnabas.compat.confluent_kafka.error import (
    ConsumeError,
    KeyDeserializationError,
    ProduceError,
    SerializationError,
    ValueSerializationError,
)


def test_compares_with_codes_and_others() -> None:
    error = KafkaError(KafkaError._PARTITION_EOF, "the end")
    assert error == KafkaError._PARTITION_EOF
    assert error == KafkaError(KafkaError._PARTITION_EOF)
    assert error != KafkaError._ALL_BROKERS_DOWN
    assert error != "the end"
    assert KafkaError(1) < KafkaError(2) <= 2 < KafkaError(3)
    assert KafkaError(3) > 2
    assert KafkaError(3) >= KafkaError(3)
    assert {error: 1}[KafkaError(-191)] == 1
    with pytest.raises(TypeError):
        assert error < "the end"


def test_text_and_flags() -> None:
    error = KafkaError(3, "gone", fatal=True, retriable=True, txn_requires_abort=True)
    assert str(error) == 'KafkaError{FATAL,code=UNKNOWN_TOPIC_OR_PART,val=3,str="gone"}'
    assert (error.fatal(), error.retriable(), error.txn_requires_abort()) == (True, True, True)
    copy = pickle.loads(pickle.dumps(error))
    assert (repr(copy), copy.retriable()) == (repr(error), True)


def test_exceptions_of_serializers() -> None:
    failure = ValueSerializationError(ValueError("no"))
    assert isinstance(failure, ProduceError)
    assert isinstance(failure, SerializationError)
    assert isinstance(failure, KafkaException)
    assert (failure.code, failure.name) == (KafkaError._VALUE_SERIALIZATION, "_VALUE_SERIALIZATION")
    assert isinstance(KeyDeserializationError(ValueError("no")), ConsumeError)
