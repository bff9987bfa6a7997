"""The exceptions of this package.

    BarnabasError
    ├── InvalidValueError      an invalid name, option or argument (also a ValueError)
    │   └── ConfigError        an option: names the option, the value and the limit
    ├── SerializationError     a key or value that cannot be serialized or deserialized
    ├── ProtocolError          bytes that break the protocol
    │   ├── LocalProtocolError     ours: something that the protocol cannot carry
    │   └── RemoteProtocolError    the peer's: a frame or message that cannot be decoded
    ├── CorruptRecordError     inconsistent record bytes (CRC, length, count)
    ├── CorruptFileError       a corrupt file
    ├── StorageError           a disk failure (full, read-only, missing)
    │   └── DamagedLogError    a log with damage other than a torn tail
    ├── RequestError           a response with an ErrorCode, sent or received
    │   └── CodedError         … one class per code, for clients: see request_errors.py
    └── RetriableError         may succeed later
        └── InvalidMetadataError   … after a metadata refresh

Bugs are `assert`s, not exceptions of this tree. `retriable` is whether the same call may succeed
later, `invalid_metadata` whether a client should refresh its metadata first.
"""

from __future__ import annotations

from barnabas.model.error_codes import ErrorCode


class BarnabasError(Exception):
    """Every error that this package raises on purpose."""

    retriable: bool = False
    invalid_metadata: bool = False


class RetriableError(BarnabasError):
    """The same call may succeed later."""

    retriable = True


class InvalidMetadataError(RetriableError):
    """The same call may succeed after a metadata refresh."""

    invalid_metadata = True


class InvalidValueError(BarnabasError, ValueError):
    """A value that is never valid, whatever the state of the cluster."""


class ConfigError(InvalidValueError):
    """An option with an invalid name or value; the message names option, value and limit."""


class SerializationError(BarnabasError):
    """A key or value that cannot be serialized or deserialized."""


class ProtocolError(BarnabasError):
    """Bytes that break the protocol."""


class LocalProtocolError(ProtocolError):
    """A message to send that the protocol (or the negotiated version) cannot carry."""


class RemoteProtocolError(ProtocolError):
    """The peer sent bytes that cannot be decoded."""


class CorruptRecordError(BarnabasError):
    """Inconsistent record bytes; `code` is the error that a producer gets."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.CORRUPT_MESSAGE) -> None:
        super().__init__(message)
        self.code = code


class CorruptFileError(BarnabasError):
    """A corrupt file of the broker or the log."""


class StorageError(BarnabasError):
    """A disk operation failed."""

    retriable = True


class DamagedLogError(StorageError):
    """A log with damage that recovery may not truncate: it is not opened."""

    retriable = False


class RequestError(BarnabasError):
    """A request that failed with an error code."""

    broker_message: str | None = None
    """What the broker said about it, if it said anything beside the code."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.meaning)
        self.code = code
        self.message = message

    @property
    def retriable(self) -> bool:  # type: ignore[override]
        return self.code.retriable

    @property
    def invalid_metadata(self) -> bool:  # type: ignore[override]
        return self.code.stale_metadata

    @property
    def errno(self) -> int:
        """The code as the number that goes on the wire."""
        return int(self.code)

    @property
    def description(self) -> str:
        """What the code means."""
        return self.code.meaning
