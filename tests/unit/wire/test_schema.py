"""Declarations become plain classes with slots, keyword constructors, equality and a repr."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest

from barnabas.wire.codec import decode, encode
from barnabas.wire.schema import (
    Message,
    Struct,
    Versions,
    field,
    message,
    struct,
    versions_of,
)


@struct
class Point(Struct):
    x: int = field("int16", default=7)
    label: str | None = field("string", versions="1+", nullable=True)


@message(key=99, versions="0-2", flexible="2+", stable="0-1")
class Drawing(Message):
    points: list[Point] = field([Point])
    centre: Point = field(Point, versions="1+")
    corner: Point | None = field(Point, versions="1+", nullable=True, default=None)
    port: int = field("uint16", versions="1+")
    mask: int = field("uint32", versions="1+")
    ids: list[bytes] = field(["uuid"], versions="1+")
    blobs: list[bytes] = field(["bytes"], versions="1+")
    weights: list[float] | None = field(["float64"], versions="1+", nullable="2+")
    hidden: list[bytes] = field(["bytes"], versions="2+", tag=0)


def test_fields_are_slots() -> None:
    assert Drawing.__slots__ == tuple(f.name for f in Drawing.FIELDS)
    with pytest.raises(AttributeError):
        Drawing().colour = 1  # type: ignore[attr-defined]
    assert not hasattr(Point(), "__dict__")


def test_the_constructor_takes_keywords_only_and_knows_the_defaults() -> None:
    point = Point(label="a")
    assert (point.x, point.label) == (7, "a")
    assert Point().label == ""
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Point(y=1)  # type: ignore[call-arg]


def test_lists_and_structs_are_made_afresh() -> None:
    first, second = Drawing(), Drawing()
    first.points.append(Point())
    first.centre.x = 1
    assert second.points == []
    assert second.centre.x == 7
    assert second.corner is None


def test_equality_compares_class_and_fields() -> None:
    assert Point(x=1) == Point(x=1)
    assert Point(x=1) != Point(x=2)
    assert Point() != 7
    assert Drawing(points=[Point(x=1)]) == Drawing(points=[Point(x=1)])
    assert Drawing(points=[Point(x=1)]) != Drawing(points=[Point(x=2)])
    with pytest.raises(TypeError):
        hash(Point())


def test_repr_reads_like_the_constructor() -> None:
    assert repr(Point(x=1, label=None)) == "Point(x=1, label=None)"
    assert eval(repr(Drawing(points=[Point()])), {"Drawing": Drawing, "Point": Point}) == Drawing(
        points=[Point()]
    )


def test_copies_are_equal_and_apart() -> None:
    drawing = Drawing(points=[Point()])
    twin = copy.deepcopy(drawing)
    twin.points[0].x = 9
    assert drawing.points[0].x == 7
    assert copy.copy(drawing) == drawing


def test_versions_are_read_and_shown() -> None:
    assert versions_of("3") == Versions(3, 3)
    assert versions_of("3-7") == Versions(3, 7)
    assert 40 in versions_of("3+")
    assert 2 not in versions_of("3+")
    assert [str(versions_of(text)) for text in ("3", "3-7", "3+")] == ["3", "3-7", "3+"]


def test_a_message_knows_its_key_and_versions() -> None:
    assert Drawing.KEY == 99
    assert Versions(0, 2) == Drawing.VERSIONS
    assert Versions(0, 1) == Drawing.STABLE
    assert [Drawing.is_flexible(version) for version in (0, 1, 2)] == [False, False, True]
    assert Point.FIELDS[1].is_nullable(1)
    assert not Point.FIELDS[0].is_nullable(1)


def test_every_kind_of_field_has_its_bytes() -> None:
    """Kinds that no message of ours uses yet are part of the notation all the same."""
    drawing = Drawing(
        points=[Point(x=-2, label=None)],
        corner=Point(x=3, label="c"),
        port=65535,
        mask=2**32 - 1,
        ids=[bytes(range(16))],
        blobs=[b"", b"ab"],
        weights=[1.5],
        hidden=[b"z"],
    )
    centre, corner = "0008" + "01" + "00", "01" + "0003" + "0263" + "00"
    expected = (
        "02" + "fffe" + "00" + "00"
        + centre.replace("0008", "0007") + corner + "ffff" + "ffffffff"
        + "02" + bytes(range(16)).hex()
        + "03" + "01" + "036162"
        + "02" + "3ff8000000000000"
        + "01" + "00" + "03" + "02" + "027a"
    )  # fmt: skip
    assert encode(drawing, 2).hex() == expected
    assert decode(Drawing, bytes.fromhex(expected), 2) == (drawing, len(expected) // 2)


@pytest.mark.parametrize("version", [1, 2])
def test_null_structs_and_arrays(version: int) -> None:
    drawing: Any = Drawing(weights=None if version == 2 else [])
    data = encode(drawing, version)
    assert decode(Drawing, data, version) == (drawing, len(data))


def test_importing_a_message_module_is_quick() -> None:
    """Nothing is compiled when a class is declared: constructors and codecs come on first use."""
    program = (
        "import time\n"
        "import barnabas.model.ids, barnabas.wire.schema\n"
        "start = time.process_time()\n"
        "import barnabas.wire.messages.heartbeat, barnabas.wire.messages.metadata\n"
        "print(time.process_time() - start)\n"
    )
    # The best of some runs: the first one may have to write the bytecode.
    seconds = [
        float(subprocess.run([sys.executable, "-c", program], capture_output=True).stdout)
        for _ in range(3)
    ]
    assert min(seconds) < 0.01
