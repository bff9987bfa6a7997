"""Values in Protocol Buffers: messages as structs of Spark, and one value as a Python object.

`valueSchema` is "FILE#package.Message", where FILE is what `protoc --include_imports
--descriptor_set_out=FILE` writes. It is read on the driver and travels with the query. Enums are
read as their names, unsigned numbers as the next larger type, timestamps as Spark's.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas.model.errors import ConfigError

_TIMESTAMP = "google.protobuf.Timestamp"


def read_descriptors(text: str) -> tuple[bytes, str]:
    """Return the descriptors and the message's name that an option names."""
    path, mark, name = text.partition("#")
    if not mark or not path or not name:
        raise ConfigError(f"valueSchema={text}: must be FILE#package.Message")
    try:
        return Path(path).read_bytes(), name
    except OSError as failure:
        raise ConfigError(f"valueSchema={text}: {failure.strerror}") from failure


def protobuf_ddl(descriptors: bytes, name: str) -> str:
    """Return the Spark type of a message."""
    return _struct(_message(descriptors, name), ())


def protobuf_decoder(descriptors: bytes, name: str) -> Callable[[bytes], Any]:
    """Return a decoder of one value; it raises DecodeError if that fails."""
    from google.protobuf.message_factory import GetMessageClass

    kind = GetMessageClass(_message(descriptors, name))

    def decode(value: bytes) -> Any:
        return _object(kind.FromString(value))

    return decode


def _message(descriptors: bytes, name: str) -> Any:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError

    pool = DescriptorPool()
    try:
        for file in FileDescriptorSet.FromString(descriptors).file:
            pool.Add(file)
        return pool.FindMessageTypeByName(name)
    except DecodeError as failure:
        raise ConfigError(f"valueSchema: not a set of descriptors ({failure})") from failure
    except TypeError as failure:
        raise ConfigError(
            f"valueSchema: the descriptors are incomplete ({failure}); write them with "
            "protoc --include_imports --descriptor_set_out=FILE"
        ) from failure
    except KeyError:
        raise ConfigError(f"valueSchema: the descriptors have no message {name}") from None


def _struct(message: Any, inside: tuple[str, ...]) -> str:
    if message.full_name in inside:
        raise ConfigError(f"valueSchema: {message.full_name} must not contain itself")
    inside = (*inside, message.full_name)
    fields = [f"`{field.name}`: {_field(field, inside)}" for field in message.fields]
    return f"STRUCT<{', '.join(fields)}>"


def _field(field: Any, inside: tuple[str, ...]) -> str:
    if _is_map(field):
        parts = field.message_type.fields_by_name
        return f"MAP<{_single(parts['key'], inside)}, {_single(parts['value'], inside)}>"
    kind = _single(field, inside)
    return f"ARRAY<{kind}>" if field.is_repeated else kind


def _single(field: Any, inside: tuple[str, ...]) -> str:
    kinds = {
        field.CPPTYPE_INT32: "INT",
        field.CPPTYPE_INT64: "BIGINT",
        field.CPPTYPE_UINT32: "BIGINT",
        field.CPPTYPE_UINT64: "DECIMAL(20, 0)",
        field.CPPTYPE_DOUBLE: "DOUBLE",
        field.CPPTYPE_FLOAT: "FLOAT",
        field.CPPTYPE_BOOL: "BOOLEAN",
        field.CPPTYPE_ENUM: "STRING",
        field.CPPTYPE_STRING: "BINARY" if field.type == field.TYPE_BYTES else "STRING",
    }
    if field.cpp_type != field.CPPTYPE_MESSAGE:
        return kinds[field.cpp_type]
    if field.message_type.full_name == _TIMESTAMP:
        return "TIMESTAMP"
    return _struct(field.message_type, inside)


def _is_map(field: Any) -> bool:
    kind = field.message_type
    return kind is not None and kind.has_options and kind.GetOptions().map_entry


def _object(message: Any) -> Any:
    if message.DESCRIPTOR.full_name == _TIMESTAMP:
        start = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return start + datetime.timedelta(
            seconds=message.seconds, microseconds=message.nanos // 1000
        )
    found: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if _is_map(field):
            inner = field.message_type.fields_by_name["value"]
            found[field.name] = [(key, _cell(inner, value[key])) for key in value]
        elif field.is_repeated:
            found[field.name] = [_cell(field, each) for each in value]
        elif field.has_presence and not message.HasField(field.name):
            found[field.name] = None
        else:
            found[field.name] = _cell(field, value)
    return found


def _cell(field: Any, value: Any) -> Any:
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        return _object(value)
    if field.cpp_type == field.CPPTYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return value
