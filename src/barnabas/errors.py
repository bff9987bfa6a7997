"""The errors of the clients, under the names that users of Kafka know.

Everything that kafka-python's and aiokafka's `errors` modules have is here, so that `except`
clauses keep their meaning when an import changes. `KafkaError` is the base of all. Where the two
libraries (or older releases of them) have several names for one thing, all are the same class.
"""

from __future__ import annotations

from barnabas.client.errors import (
    AuthenticationFailedError,
    Cancelled,
    ClientForkedError,
    CommitFailedError,
    ConcurrentUseError,
    ConnectError,
    ConnectionLostError,
    ConsumerStoppedError,
    ConsumerTimeout,
    IllegalOperation,
    IllegalStateError,
    KafkaTimeoutError,
    LogTruncationError,
    NetworkError,
    NoBrokersAvailable,
    NodeNotReadyError,
    NoOffsetForPartitionError,
    ProducerClosed,
    QuotaViolationError,
    RequestTimeoutError,
    StaleMetadata,
    TooManyInFlightRequests,
    TransactionAbortedError,
    UnsupportedApiError,
    UnsupportedCodecError,
    WakeupError,
)
from barnabas.model import request_errors
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import (
    BarnabasError,
    ConfigError,
    CorruptFileError,
    CorruptRecordError,
    InvalidMetadataError,
    InvalidValueError,
    LocalProtocolError,
    ProtocolError,
    RemoteProtocolError,
    RequestError,
    RetriableError,
    SerializationError,
    StorageError,
)
from barnabas.model.request_errors import *  # noqa: F403

BrokerResponseError = RequestError
CorrelationIdError = RemoteProtocolError
CorruptRecordException = CorruptRecordError
IllegalArgumentError = InvalidValueError
IncompatibleBrokerVersion = UnsupportedApiError
InvalidMessageError = CorruptRecordError
InvalidReceiveError = RemoteProtocolError
KafkaConfigurationError = ConfigError
KafkaConnectionError = NetworkError
KafkaError = BarnabasError
KafkaProtocolError = ProtocolError
KafkaUnavailableError = NoBrokersAvailable
MetadataEmptyBrokerList = NoBrokersAvailable
UnrecognizedBrokerVersion = UnsupportedApiError


class NoError(RequestError):
    """The class of code 0, which stands for success; it is never raised."""

    errno = 0


def for_code(code: int) -> type[RequestError]:
    """Return the class of an error code; `NoError` for 0."""
    return request_errors.REQUEST_ERRORS[ErrorCode.of(code)] if code else NoError


__all__ = [
    "AuthenticationFailedError",
    "BarnabasError",
    "BrokerResponseError",
    "Cancelled",
    "ClientForkedError",
    "CommitFailedError",
    "ConcurrentUseError",
    "ConfigError",
    "ConnectError",
    "ConnectionLostError",
    "ConsumerStoppedError",
    "ConsumerTimeout",
    "CorrelationIdError",
    "CorruptFileError",
    "CorruptRecordError",
    "CorruptRecordException",
    "IllegalArgumentError",
    "IllegalOperation",
    "IllegalStateError",
    "IncompatibleBrokerVersion",
    "InvalidMessageError",
    "InvalidMetadataError",
    "InvalidReceiveError",
    "InvalidValueError",
    "KafkaConfigurationError",
    "KafkaConnectionError",
    "KafkaError",
    "KafkaProtocolError",
    "KafkaTimeoutError",
    "KafkaUnavailableError",
    "LocalProtocolError",
    "LogTruncationError",
    "MetadataEmptyBrokerList",
    "NetworkError",
    "NoBrokersAvailable",
    "NoError",
    "NoOffsetForPartitionError",
    "NodeNotReadyError",
    "ProducerClosed",
    "ProtocolError",
    "QuotaViolationError",
    "RemoteProtocolError",
    "RequestError",
    "RequestTimeoutError",
    "RetriableError",
    "SerializationError",
    "StaleMetadata",
    "StorageError",
    "TooManyInFlightRequests",
    "TransactionAbortedError",
    "UnrecognizedBrokerVersion",
    "UnsupportedApiError",
    "UnsupportedCodecError",
    "WakeupError",
    "for_code",
]
__all__ += request_errors.__all__
