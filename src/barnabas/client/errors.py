"""Errors of a client, besides the error codes that brokers send.

    BarnabasError
    ├── NetworkError             no response; the same call may succeed later
    │   ├── ConnectError             no connection could be opened: names addresses and reasons
    │   │   ├── NoBrokersAvailable       … to none of the known addresses
    │   │   └── NodeNotReadyError        … yet, to this broker
    │   ├── ConnectionLostError      the connection ended before the response
    │   └── RequestTimeoutError      no response in time (also a KafkaTimeoutError)
    ├── KafkaTimeoutError        a call took longer than its timeout
    ├── AuthenticationFailedError    the broker rejected our credentials, or we its certificate
    ├── IllegalStateError        a call that is not allowed in this state
    │   ├── ProducerClosed, ConsumerStoppedError, ClientForkedError
    │   └── IllegalOperation         … or never with these options
    ├── CommitFailedError        the group assigned the partitions to another member
    ├── NoOffsetForPartitionError    nothing committed, and auto.offset.reset is none
    ├── LogTruncationError       the log lost what the consumer had read
    ├── TransactionAbortedError  the record's transaction was aborted before it was sent
    └── UnsupportedApiError      the peer is too old or too new: names the API and both ranges

After a `ConnectionLostError` or `RequestTimeoutError` the broker may or may not have acted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.model.errors import BarnabasError, InvalidMetadataError, RetriableError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import SaslAuthenticationFailedError, UnsupportedVersionError


class NetworkError(InvalidMetadataError):
    """No response was received."""


class ConnectError(NetworkError):
    """No connection could be opened."""


class NoBrokersAvailable(ConnectError):
    """None of the known brokers and bootstrap addresses could be reached."""


class NodeNotReadyError(ConnectError):
    """There is no connection to this broker yet."""


class ConnectionLostError(NetworkError):
    """The connection ended before the response."""


class KafkaTimeoutError(RetriableError):
    """The call did not complete within its timeout."""


class RequestTimeoutError(NetworkError, KafkaTimeoutError):
    """No response was received in time."""


class AuthenticationFailedError(SaslAuthenticationFailedError):
    """Client and broker failed to authenticate each other; the same credentials fail again."""


class UnsupportedApiError(UnsupportedVersionError):
    """Our versions of an API and the peer's do not overlap."""


class IllegalStateError(BarnabasError):
    """The call is not allowed in the current state."""


class ProducerClosed(IllegalStateError):
    """The producer was closed."""


class ConsumerStoppedError(IllegalStateError):
    """The consumer was closed, or not started yet."""


class WakeupError(BarnabasError):
    """`wakeup` was called, which ends one wait of the consumer."""


class ConcurrentUseError(IllegalStateError):
    """Two threads called one consumer at the same time."""


class ClientForkedError(IllegalStateError):
    """The client was created in the parent of this process."""


class IllegalOperation(IllegalStateError):
    """The call is not possible with the options of this client."""


class ConsumerTimeout(KafkaTimeoutError):
    """No record was received within consumer_timeout_ms."""


class TooManyInFlightRequests(RetriableError):
    """The connection has its maximum of requests in flight."""


class Cancelled(RetriableError):
    """The operation was cancelled before it completed."""


class StaleMetadata(InvalidMetadataError):
    """The client's metadata is too old."""


class CommitFailedError(BarnabasError):
    """The group assigned the partitions to another member: the offsets cannot be committed."""

    def __init__(
        self,
        message: str = "the group has rebalanced and assigned the partitions to another member; "
        "records were processed for longer than max.poll.interval.ms, or heartbeats stopped",
    ) -> None:
        super().__init__(message)


class NoOffsetForPartitionError(BarnabasError):
    """Nothing was committed for a partition, and auto.offset.reset is none."""

    partition: TopicPartition | None = None


class LogTruncationError(BarnabasError):
    """The log no longer contains what the consumer has read (KIP-320).

    `divergent_offsets` has, for each partition, the offset up to which log and consumer agree, or
    None if the broker does not know it.
    """

    def __init__(
        self, divergent_offsets: Mapping[TopicPartition, Any], message: str | None = None
    ) -> None:
        super().__init__(
            message or f"logs were truncated below the read offsets: {dict(divergent_offsets)}"
        )
        self.divergent_offsets = divergent_offsets


class TransactionAbortedError(BarnabasError):
    """The transaction of a record was aborted before the record was sent."""


class QuotaViolationError(BarnabasError):
    """A quota of the client itself is used up."""


class UnsupportedCodecError(BarnabasError):
    """There is no library for this compression."""
