"""How the console consumer prints records: Kafka's formatters, by the names of their classes.

Old and new names, and those inside of classes, mean the same formatter:
`kafka.tools.DefaultMessageFormatter`, `org.apache.kafka.tools.consumer.DefaultMessageFormatter`,
`kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter`.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.cli.kafka.flags import UsageError
from barnabas.cli.kafka.java_text import double_text

if TYPE_CHECKING:
    from barnabas.kernels import ConsumerRecord
    from barnabas.wire.schema import Message, Struct

TIMESTAMP_TYPES = {0: "CreateTime", 1: "LogAppendTime"}
DEFAULT = "DefaultMessageFormatter"


class Formatter(Protocol):
    """Returns what is printed of a record."""

    def __call__(self, record: ConsumerRecord, /) -> bytes: ...


def formatter_named(name: str, properties: Mapping[str, str]) -> Formatter:
    """Return the formatter of a class name; raise UsageError if there is none."""
    last = re.split(r"[.$]", name)[-1]
    make = _FORMATTERS.get(last)
    if make is None:
        known = ", ".join(sorted(_FORMATTERS))
        raise UsageError(
            f"--formatter {name}: Java classes cannot be loaded; the formatters are {known}"
        )
    return make(properties)


class DefaultFormatter:
    """Prints what the properties ask for: columns, separated by `key.separator`."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def flag(name: str, default: str = "false") -> bool:
            return properties.get(f"print.{name}", default).strip().lower() == "true"

        self._separator = properties.get("key.separator", "\t").encode()
        self._end = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._key = _deserializer("key.deserializer", properties)
        self._value = _deserializer("value.deserializer", properties)
        self._header = _deserializer("headers.deserializer", properties)
        self._columns: list[Callable[[ConsumerRecord], bytes]] = []
        for name, column in (
            ("timestamp", _timestamp),
            ("partition", lambda record: b"Partition:%d" % record.partition),
            ("offset", lambda record: b"Offset:%d" % record.offset),
            ("delivery", lambda record: b"Delivery:NONE"),
            ("epoch", _epoch),
            ("headers", self._headers),
            ("key", lambda record: self._text(self._key, record, record.key)),
        ):
            if flag(name):
                self._columns.append(column)
        if flag("value", "true"):
            self._columns.append(lambda record: self._text(self._value, record, record.value))

    def __call__(self, record: ConsumerRecord, /) -> bytes:
        if not self._columns:
            return b""
        return self._separator.join([column(record) for column in self._columns]) + self._end

    def _headers(self, record: ConsumerRecord) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        return self._headers_separator.join(
            name.encode() + b":" + self._text(self._header, record, value)
            for name, value in record.headers
        )

    def _text(self, deserializer: Any, record: ConsumerRecord, data: bytes | None) -> bytes:
        if data is None:
            return self._null
        if deserializer is None:
            return data
        return java_text(deserializer.deserialize(record.topic, record.headers, data))


def _timestamp(record: ConsumerRecord) -> bytes:
    if record.timestamp < 0:
        return b"NO_TIMESTAMP"
    return f"{TIMESTAMP_TYPES[record.timestamp_type]}:{record.timestamp}".encode()


def _epoch(record: ConsumerRecord) -> bytes:
    return b"Epoch:NONE" if record.leader_epoch is None else b"Epoch:%d" % record.leader_epoch


def _deserializer(option: str, properties: Mapping[str, str]) -> Any:
    name = properties.get(option)
    if not name:
        return None
    from barnabas.config.clients.classes import ROLES, made

    prefix = f"{option}."
    configs = {
        given.removeprefix(prefix): value
        for given, value in properties.items()
        if given.startswith(prefix)
    }
    return made(option, ROLES["deserializer"], name, configs, option.startswith("key"))


def java_text(value: Any) -> bytes:
    """Return a deserialized value as Java's toString has it; bytes as they are."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return _java_text(value).encode()


def _java_text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_java_text, value))}]"
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return str(value)


class LoggingFormatter:
    """Prints as the default one does, and each record once more on standard error."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._default = DefaultFormatter(properties)

    def __call__(self, record: ConsumerRecord, /) -> bytes:
        when = "" if record.timestamp < 0 else _timestamp(record).decode() + ", "
        key = "null " if record.key is None else record.key.decode(errors="replace") + ", "
        value = "null" if record.value is None else record.value.decode(errors="replace")
        print(f"{when}key:{key}value:{value}", file=sys.stderr)
        return self._default(record)


class CoordinatorFormatter:
    """Prints records of a coordinator's topic as JSON; of other kinds than its own, nothing."""

    def __init__(
        self, decode: Callable[[bytes, bytes | None], tuple[Message, Message | None] | None]
    ) -> None:
        self._decode = decode

    def __call__(self, record: ConsumerRecord, /) -> bytes:
        key, value = record.key, record.value
        decoded = None if key is None else self._decode(key, value)
        if key is None or decoded is None:
            return b""
        key_version = _version(key)
        document: dict[str, Any] = {
            "key": {"version": key_version, "data": _document(decoded[0], key_version)},
            "value": None,
        }
        if value is not None and decoded[1] is not None:
            version = _version(value)
            document["value"] = {"version": version, "data": _document(decoded[1], version)}
        return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _version(data: bytes) -> int:
    return int.from_bytes(data[:2], "big", signed=True)


def _document(struct: Struct, version: int) -> dict[str, Any]:
    """Return a message as Kafka's JSON converters do: fields of the version, in camel case."""
    document = {}
    for field in type(struct).FIELDS:
        if version not in field.versions:
            continue
        value = getattr(struct, field.name)
        if field.tag is not None and value == field.default:
            continue
        first, *others = field.name.split("_")
        document[first + "".join(word.capitalize() for word in others)] = _plain(value, version)
    return document


def _plain(value: Any, version: int) -> Any:
    if isinstance(value, list):
        return [_plain(each, version) for each in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode("ascii")
    if hasattr(type(value), "FIELDS"):
        return _document(value, version)
    return value


def _offset_record(key: bytes, value: bytes | None) -> tuple[Message, Message | None] | None:
    from barnabas.groups.records import OffsetKey

    return _group_record(key, value, OffsetKey)


def _classic_group_record(key: bytes, value: bytes | None) -> tuple[Message, Message | None] | None:
    from barnabas.groups.records import ClassicGroupKey

    return _group_record(key, value, ClassicGroupKey)


def _group_record(
    key: bytes, value: bytes | None, kind: type[Message]
) -> tuple[Message, Message | None] | None:
    from barnabas.groups.records import decode_key, decode_value

    decoded = decode_key(key)
    if not isinstance(decoded, kind):
        return None
    return decoded, None if value is None else decode_value(decoded, value)


def _transaction_record(key: bytes, value: bytes | None) -> tuple[Message, Message | None] | None:
    from barnabas.transactions.records import KEY_VERSION, TransactionLogKey, TransactionLogValue
    from barnabas.wire.versioned import decode_versioned

    if _version(key) > KEY_VERSION:
        return None
    decoded, _ = decode_versioned(TransactionLogKey, key)
    if value is None:
        return decoded, None
    return decoded, decode_versioned(TransactionLogValue, value)[0]


_FORMATTERS: dict[str, Callable[[Mapping[str, str]], Formatter]] = {
    DEFAULT: DefaultFormatter,
    "LoggingMessageFormatter": LoggingFormatter,
    "NoOpMessageFormatter": lambda properties: lambda record: b"",
    "OffsetsMessageFormatter": lambda properties: CoordinatorFormatter(_offset_record),
    "GroupMetadataMessageFormatter": lambda properties: CoordinatorFormatter(_classic_group_record),
    "TransactionLogMessageFormatter": lambda properties: CoordinatorFormatter(_transaction_record),
}
