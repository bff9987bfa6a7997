"""Our serializers and deserializers beside those of Apache Kafka's own clients, byte for byte."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tools.apache_kafka import Distribution

from barnabas.errors import SerializationError
from barnabas.serialization import (
    BooleanDeserializer,
    BooleanSerializer,
    ByteArraySerializer,
    ByteBufferSerializer,
    BytesSerializer,
    Deserializer,
    DoubleDeserializer,
    DoubleSerializer,
    FloatDeserializer,
    FloatSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    ListDeserializer,
    ListSerializer,
    LongDeserializer,
    LongSerializer,
    Serializer,
    ShortDeserializer,
    ShortSerializer,
    StringDeserializer,
    StringSerializer,
    UUIDDeserializer,
    UUIDSerializer,
    VoidSerializer,
)

PROGRAM = Path(__file__).with_name("Serializers.java")
ID = UUID("7ba7b810-9dad-11d1-80b4-00c04fd430c8")
MIXED = "aé€😀"
ENCODINGS = ("ISO-8859-1", "US-ASCII", "UTF-16", "UTF-16LE", "UTF-32")
RAW = b"\x01\x02\xff"

WRITTEN: dict[str, tuple[Serializer, Any]] = {
    "string": (StringSerializer(), MIXED),
    "string-empty": (StringSerializer(), ""),
    "string-null": (StringSerializer(), None),
    "string-lone": (StringSerializer(), "x\ud800y"),
    **{f"string-{name}": (StringSerializer(name), MIXED) for name in ENCODINGS},
    **{f"string-{name}-empty": (StringSerializer(name), "") for name in ENCODINGS},
    "uuid": (UUIDSerializer(), ID),
    **{
        f"{kind}:{number}": (serializer, number)
        for kind, serializer, bits in (
            ("short", ShortSerializer(), 16),
            ("integer", IntegerSerializer(), 32),
            ("long", LongSerializer(), 64),
        )
        for number in (0, 1, -1, -(1 << bits - 1), (1 << bits - 1) - 1)
    },
    **{
        f"float:{text}": (FloatSerializer(), float(text))
        for text in ("0.0", "-0.0", "1.5", "-3250.5")
    },
    **{
        f"double:{text}": (DoubleSerializer(), float(text))
        for text in ("0.0", "-0.0", "0.1", "-1.0E300", "4.9E-324")
    },
    "boolean:true": (BooleanSerializer(), True),
    "boolean:false": (BooleanSerializer(), False),
    "bytearray": (ByteArraySerializer(), RAW),
    "bytes": (BytesSerializer(), RAW),
    "bytebuffer": (ByteBufferSerializer(), memoryview(RAW)),
    "void": (VoidSerializer(), None),
    "list-integer": (ListSerializer(IntegerSerializer()), [1, None, -2, None]),
    "list-string": (ListSerializer(StringSerializer()), ["a", None, "", "bcd"]),
    "list-uuid": (ListSerializer(UUIDSerializer()), [ID, None]),
    "list-empty": (ListSerializer(LongSerializer()), []),
}

READERS: dict[str, Deserializer] = {
    "string": StringDeserializer(),
    **{f"string-{name}": StringDeserializer(name) for name in ENCODINGS},
    "uuid": UUIDDeserializer(),
    "short": ShortDeserializer(),
    "integer": IntegerDeserializer(),
    "long": LongDeserializer(),
    "float": FloatDeserializer(),
    "double": DoubleDeserializer(),
    "boolean": BooleanDeserializer(),
    "list-integer": ListDeserializer(IntegerDeserializer()),
    "list-string": ListDeserializer(StringDeserializer()),
}

READ: dict[str, list[bytes]] = {
    "string": [MIXED.encode(), b"", b"a\xffb", b"\xe2\x82", b"\xf0\x9f\x98x"],
    "string-ISO-8859-1": [bytes(range(256))],
    "string-US-ASCII": [b"a\xe9z"],
    "string-UTF-16": [
        b"\xfe\xff\x00a\x20\xac",
        b"\xff\xfea\x00\xac\x20",
        b"\x00a\x20\xac",
    ],
    "string-UTF-16LE": [b"a\x00\xac\x20"],
    "string-UTF-32": [b"\x00\x00\x00a\x00\x01\xf6\x00", b"\xff\xfe\x00\x00a\x00\x00\x00"],
    "uuid": [str(ID).encode(), str(ID).upper().encode(), b"1-2-3-4-5", b"nonsense", b""],
    "short": [b"\x7f\xff", b"\x00", b""],
    "integer": [b"\x80\x00\x00\x00", b"\x00" * 5],
    "long": [b"\xff" * 8, b"\x00" * 4],
    "boolean": [b"\x01", b"\x00", b"\x02", b""],
    "list-integer": [ListSerializer(IntegerSerializer()).serialize("t", None, [7, None]) or b""],
    "list-string": [ListSerializer(StringSerializer()).serialize("t", None, ["é", None]) or b""],
}


@pytest.fixture(scope="session")
def told(kafka: Distribution) -> list[str]:
    """What Kafka's classes write and read."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java")
    lines = [f"{name} x{data.hex()}" for name, cases in READ.items() for data in cases]
    command = [java, "-cp", f"{kafka.jars}/*", str(PROGRAM)]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_what_is_written_has_kafkas_bytes(told: list[str]) -> None:
    kafkas = dict(line.split(" ") for line in told if not line.startswith("read "))
    ours = {}
    for name, (serializer, value) in WRITTEN.items():
        data = serializer.serialize("t", None, value)
        ours[name] = "null" if data is None else f"x{bytes(data).hex()}"
    assert ours == kafkas


def test_what_is_read_is_what_kafka_reads(told: list[str]) -> None:
    """Also what is malformed: replaced where Kafka replaces, refused in its words."""
    kafkas = {}
    for line in told:
        if line.startswith("read "):
            _, name, data, points = line.split(" ")
            text = "".join(chr(int(point, 16)) for point in points.split(",") if point)
            kafkas[name, data] = text
    ours = {}
    for name, cases in READ.items():
        for case in cases:
            ours[name, f"x{case.hex()}"] = _shown(READERS[name], case)
    for case, text in kafkas.items():
        if text.startswith("refused: "):
            assert ours[case].startswith(text), case
        else:
            assert ours[case] == text, case
    assert len(ours) == len(kafkas)


def _shown(reader: Deserializer, data: bytes) -> str:
    """Return what was read as Java shows it."""
    try:
        read = reader.deserialize("t", None, data)
    except SerializationError as failure:
        return f"refused: {failure}"
    if isinstance(read, list):
        return f"[{', '.join('null' if each is None else str(each) for each in read)}]"
    return str(read).lower() if isinstance(read, bool) else str(read)
