"""Protocol Buffers: messages of a generated class, bare or in the frame of schema registries.

Needs the extra `schemas`.
"""

from __future__ import annotations

from typing import Any

from barnabas.model.errors import SerializationError
from barnabas.model.serializer import Deserializer, Headers, Serializer
from barnabas.serialization.framing import (
    checked_id,
    frame,
    message_indexes,
    read_indexes,
    unframe,
)


class ProtobufSerializer(Serializer):
    """Messages of one class as Protocol Buffers.

        ProtobufSerializer(Order)
        ProtobufSerializer(Order, schema_id=7)  # as clients of a schema registry write it

    Without `schema_id` a value is the bare message.
    """

    def __init__(self, message: type[Any], schema_id: int | None = None) -> None:
        self._message = _checked(message)
        self._id = checked_id(schema_id)
        self._indexes = message_indexes(_path(message.DESCRIPTOR))

    def serialize(self, topic: str, headers: Headers, data: Any) -> bytes | None:
        if data is None:
            return None
        if not isinstance(data, self._message):
            raise SerializationError(
                f"ProtobufSerializer got {type(data).__name__}: must be "
                f"{self._message.DESCRIPTOR.full_name}"
            )
        payload: bytes = data.SerializeToString()
        return payload if self._id is None else frame(self._id, payload, self._indexes)


class ProtobufDeserializer(Deserializer):
    """Protocol Buffers as messages of one class.

        ProtobufDeserializer(Order)
        ProtobufDeserializer(Order, framed=True)  # as clients of a schema registry write it

    In a frame the value must be this message of its schema; its id is not looked at, since later
    fields are kept as unknown ones.
    """

    def __init__(self, message: type[Any], framed: bool = False) -> None:
        self._message = _checked(message)
        self._framed = framed
        self._path = _path(message.DESCRIPTOR)

    def deserialize(self, topic: str, headers: Headers, data: Any) -> Any:
        if data is None:
            return None
        from google.protobuf.message import DecodeError

        payload = bytes(data)
        if self._framed:
            _, payload = unframe(payload)
            path, payload = read_indexes(payload)
            if path != self._path:
                raise SerializationError(
                    f"a value of message {path} of its schema: "
                    f"{self._message.DESCRIPTOR.full_name} is {self._path}"
                )
        try:
            return self._message.FromString(payload)
        except DecodeError as failure:
            name = self._message.DESCRIPTOR.full_name
            raise SerializationError(f"not a {name}: {failure}") from failure


def _checked(message: Any) -> Any:
    if not isinstance(message, type) or not hasattr(message, "DESCRIPTOR"):
        raise TypeError(f"message {message!r}: must be a class that protoc has generated")
    return message


def _path(descriptor: Any) -> list[int]:
    """Return the positions that lead from the file to a message."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    names: list[str] = []
    outer = descriptor
    while outer is not None:
        names.insert(0, outer.name)
        outer = outer.containing_type
    file = FileDescriptorProto()
    descriptor.file.CopyToProto(file)
    path = []
    siblings = file.message_type
    for name in names:
        path.append([each.name for each in siblings].index(name))
        siblings = siblings[path[-1]].nested_type
    return path
