"""Errors: `KafkaError` describes one, exceptions carry it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.compat.confluent_kafka.error_codes import ErrorCodes, name_of, text_of

if TYPE_CHECKING:  # an import cycle: messages have errors
    from barnabas.compat.confluent_kafka.message import Message


class KafkaError(ErrorCodes):
    """What went wrong: a code, a reason, and what may be done about it.

    Compares with codes: `message.error() == KafkaError._PARTITION_EOF`.
    """

    __slots__ = ("_code", "_fatal", "_reason", "_retriable", "_txn_requires_abort")

    def __init__(
        self,
        error: int,
        reason: str | None = None,
        fatal: bool = False,
        retriable: bool = False,
        txn_requires_abort: bool = False,
    ) -> None:
        self._code = int(error)
        self._reason = reason
        self._fatal = bool(fatal)
        self._retriable = bool(retriable)
        self._txn_requires_abort = bool(txn_requires_abort)

    def code(self) -> int:
        """Return the number of the error."""
        return self._code

    def name(self) -> str:
        """Return the name of the error, such as `_ALL_BROKERS_DOWN`."""
        return name_of(self._code)

    def str(self) -> str:
        """Return the reason, or else what the code means."""
        return self._reason or text_of(self._code)

    def fatal(self) -> bool:
        """Return whether the client can only be closed."""
        return self._fatal

    def retriable(self) -> bool:
        """Return whether the same call may succeed later."""
        return self._retriable

    def txn_requires_abort(self) -> bool:
        """Return whether the transaction can only be aborted."""
        return self._txn_requires_abort

    def __str__(self) -> str:  # type: ignore[valid-type]  # `str` is a method of this class
        fatal = "FATAL," if self._fatal else ""
        return f'KafkaError{{{fatal}code={self.name()},val={self._code},str="{self.str()}"}}'

    __repr__ = __str__

    def __hash__(self) -> int:
        return self._code

    def __eq__(self, other: object) -> bool:
        code = _code(other)
        return NotImplemented if code is None else self._code == code

    def __lt__(self, other: object) -> bool:
        code = _code(other)
        return NotImplemented if code is None else self._code < code

    def __le__(self, other: object) -> bool:
        code = _code(other)
        return NotImplemented if code is None else self._code <= code

    def __gt__(self, other: object) -> bool:
        code = _code(other)
        return NotImplemented if code is None else self._code > code

    def __ge__(self, other: object) -> bool:
        code = _code(other)
        return NotImplemented if code is None else self._code >= code

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            type(self),
            (self._code, self._reason, self._fatal, self._retriable, self._txn_requires_abort),
        )


def _code(other: object) -> int | None:
    if isinstance(other, KafkaError):
        return other._code
    return other if isinstance(other, int) else None


class KafkaException(Exception):
    """Carries a `KafkaError` as its first argument."""


class IllegalStateException(RuntimeError):
    """A call that the state of the client does not allow."""


class ConcurrentModificationException(RuntimeError):
    """Two threads called one client at the same time."""


class SerializationError(KafkaException):
    """A key or value that could not be serialized or deserialized."""


class _KafkaClientError(KafkaException):
    """An error of a client; `code` and `name` are those of its `KafkaError`."""

    def __init__(
        self,
        kafka_error: KafkaError,
        exception: Exception | None = None,
        kafka_message: Message[Any, Any] | None = None,
    ) -> None:
        super().__init__(kafka_error)
        self.exception = exception
        self.kafka_message = kafka_message

    @property
    def code(self) -> int:
        """The number of the error."""
        code: int = self.args[0].code()
        return code

    @property
    def name(self) -> str:
        """The name of the error."""
        name: str = self.args[0].name()
        return name


class ConsumeError(_KafkaClientError):
    """A message that could not be consumed; `kafka_message` has what was received."""


class KeyDeserializationError(ConsumeError, SerializationError):
    """A key that could not be deserialized."""

    def __init__(
        self, exception: Exception | None = None, kafka_message: Message[Any, Any] | None = None
    ) -> None:
        error = KafkaError(KafkaError._KEY_DESERIALIZATION, str(exception))
        super().__init__(error, exception=exception, kafka_message=kafka_message)


class ValueDeserializationError(ConsumeError, SerializationError):
    """A value that could not be deserialized."""

    def __init__(
        self, exception: Exception | None = None, kafka_message: Message[Any, Any] | None = None
    ) -> None:
        error = KafkaError(KafkaError._VALUE_DESERIALIZATION, str(exception))
        super().__init__(error, exception=exception, kafka_message=kafka_message)


class ProduceError(_KafkaClientError):
    """A message that could not be produced."""

    def __init__(self, kafka_error: KafkaError, exception: Exception | None = None) -> None:
        super().__init__(kafka_error, exception, None)


class KeySerializationError(ProduceError, SerializationError):
    """A key that could not be serialized."""

    def __init__(self, exception: Exception | None = None) -> None:
        error = KafkaError(KafkaError._KEY_SERIALIZATION, str(exception))
        super().__init__(error, exception=exception)


class ValueSerializationError(ProduceError, SerializationError):
    """A value that could not be serialized."""

    def __init__(self, exception: Exception | None = None) -> None:
        error = KafkaError(KafkaError._VALUE_SERIALIZATION, str(exception))
        super().__init__(error, exception=exception)
