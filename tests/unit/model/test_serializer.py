"""Serializers as objects: there and back, None untouched, and what cannot be said is an error."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.model.isolation import IsolationLevel
from barnabas.model.serializer import DefaultSerializer, Deserializer, JsonSerializer, Serializer


@pytest.mark.parametrize(
    ("serializer", "data"),
    [
        (DefaultSerializer(), "größe"),
        (DefaultSerializer("utf-16"), "größe"),
        (JsonSerializer(), {"a": [1, 2.5, None, "ü"]}),
        (JsonSerializer(), "a text"),
        (DefaultSerializer(), None),
        (JsonSerializer(), None),
    ],
)
def test_there_and_back(serializer: DefaultSerializer, data: Any) -> None:
    packed = serializer.serialize("topic", None, data)
    assert packed is None if data is None else isinstance(packed, bytes)
    assert serializer.deserialize("topic", None, packed) == data


def test_bytes_are_left_alone() -> None:
    for data in (b"\xff", bytearray(b"\xff"), memoryview(b"\xff")):
        assert DefaultSerializer().serialize("topic", None, data) is data


def test_what_cannot_be_said() -> None:
    with pytest.raises(UnicodeEncodeError):
        DefaultSerializer("ascii").serialize("topic", None, "ü")
    with pytest.raises(TypeError):
        JsonSerializer().serialize("topic", None, {1, 2})
    with pytest.raises(ValueError):
        JsonSerializer().deserialize("topic", None, b"{")


def test_half_a_serializer_cannot_be_made() -> None:
    for kind in (Serializer, Deserializer):
        with pytest.raises(TypeError, match="abstract"):
            kind()


def test_isolation_levels_are_the_values_of_their_option() -> None:
    assert IsolationLevel.READ_COMMITTED == "read_committed"
    assert str(IsolationLevel.READ_UNCOMMITTED) == "read_uncommitted"
