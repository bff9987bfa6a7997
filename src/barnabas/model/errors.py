"""What can go wrong, as exceptions.

    BarnabasError
    ├── InvalidValueError      a name, option or argument that cannot be right (also a ValueError)
    │   └── ConfigError        an option: names the option, the value and the bound
    ├── SerializationError     a key or value that cannot be turned to bytes, or back
    ├── ProtocolError          bytes that break the protocol
    │   ├── LocalProtocolError     ours: we were asked to send something that cannot be sent
    │   └── RemoteProtocolError    the peer's: a frame or message that cannot be read
    ├── CorruptRecordError     records whose bytes contradict themselves (CRC, length, count)
    ├── CorruptFileError       a file of ours that cannot be trusted
    ├── StorageError           the disk refused (full, read-only, gone)
    │   └── DamagedLogError    a log whose files hold what is neither understood nor a torn tail
    ├── RequestError           a reply: carries the ErrorCode that the peer gets, or that we got
    │   └── CodedError         … one class per code, for clients: see request_errors.py
    └── RetriableError         what may succeed later
        └── InvalidMetadataError   … once the view of the cluster is new

Bugs are `assert`s, not exceptions of this tree. `retriable` tells whether the same call may succeed
later, `invalid_metadata` whether a client should first ask for new metadata.
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
    """The same call may succeed with a newer view of the cluster."""

    invalid_metadata = True


class InvalidValueError(BarnabasError, ValueError):
    """A value that no state of the world could make valid."""


class ConfigError(InvalidValueError):
    """An option whose name or value is refused; the message names option, value and bound."""


class SerializationError(BarnabasError):
    """A key or value that cannot be turned to bytes, or bytes that are not what they should be."""


class ProtocolError(BarnabasError):
    """Bytes that break the protocol."""


class LocalProtocolError(ProtocolError):
    """We were asked to send what the protocol (or the negotiated version) cannot carry."""


class RemoteProtocolError(ProtocolError):
    """The peer sent what cannot be read."""


class CorruptRecordError(BarnabasError):
    """Record bytes that contradict themselves; `code` is what a producer is told."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.CORRUPT_MESSAGE) -> None:
        super().__init__(message)
        self.code = code


class CorruptFileError(BarnabasError):
    """A file of ours whose content cannot be trusted."""


class StorageError(BarnabasError):
    """The disk refused an operation."""

    retriable = True


class DamagedLogError(StorageError):
    """A log whose files hold what recovery neither understands nor may cut: it is not opened."""

    retriable = False


class RequestError(BarnabasError):
    """A request that is answered with an error code."""

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
