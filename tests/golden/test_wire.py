"""The bytes of every message in every version, held against golden files and other codecs.

The other codecs (kio, and the older ones of aiokafka and kafka-python) were written by other
people: what they read from our bytes, value by value and in order, must be what we wrote, and what
they write again must be the same bytes.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib
import io
import uuid
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from tests.golden.files import FOLDER, Golden, all_golden, golden_of
from tests.unit.wire.samples import all_versions

from barnabas.wire.apis import module_name
from barnabas.wire.codec import decode, encode
from barnabas.wire.schema import Struct

FILES = sorted(path.name for path in FOLDER.glob("*.txt"))
GOLDEN = all_golden()


def test_every_message_and_version_has_golden_bytes() -> None:
    present = {(golden.cls, golden.version) for golden in GOLDEN}
    assert present == set(all_versions())


@pytest.mark.parametrize("name", FILES)
def test_encoding_gives_the_golden_bytes(name: str) -> None:
    for message, version, data in golden_of(FOLDER / name):
        assert encode(message, version).hex() == data.hex(), f"{type(message).__name__} v{version}"


@pytest.mark.parametrize("name", FILES)
def test_decoding_the_golden_bytes_gives_the_message(name: str) -> None:
    for golden in golden_of(FOLDER / name):
        for buffer in (golden.data, bytearray(golden.data), memoryview(golden.data)):
            assert decode(golden.cls, buffer, golden.version) == (golden.message, len(buffer))


def values_of(value: Any, version: int) -> Iterator[Any]:
    """Yield the plain values of a message in the order of its declaration."""
    if isinstance(value, Struct):
        for f in value.FIELDS:
            if version in f.versions:
                inner = getattr(value, f.name)
                if inner is None and f.struct is not None and f.nullable is None:
                    inner = f.struct()
                yield from values_of(inner, version)
    elif isinstance(value, list):
        yield len(value)
        for item in value:
            yield from values_of(item, version)
    elif isinstance(value, memoryview):
        yield bytes(value)
    else:
        yield value


def foreign_values(value: Any) -> Iterator[Any]:
    """Yield the plain values of what another codec read, in order."""
    if isinstance(value, datetime.timedelta):
        yield round(value / datetime.timedelta(milliseconds=1))
    elif isinstance(value, datetime.datetime):
        yield round(value.timestamp() * 1000)
    elif isinstance(value, enum.Enum):
        yield value.value
    elif isinstance(value, uuid.UUID):
        yield value.bytes
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from foreign_values(getattr(value, field.name))
    elif isinstance(value, tuple | list):
        yield len(value)
        for item in value:
            yield from foreign_values(item)
    else:
        yield value


def kio_class(golden: Golden) -> type[Any] | None:
    """Return kio's class for a message in a version, if it has that version."""
    name = golden.cls.__name__
    suffix = next((s for s in ("Request", "Response") if name.endswith(s)), "")
    # kio calls a message that is neither request nor response "data".
    folder = module_name(name.removesuffix(suffix))
    path = f"kio.schema.{folder}.v{golden.version}.{suffix.lower() or 'data'}"
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError:
        return None
    found: type[Any] = getattr(module, name)
    return found


def kio_null(value: Any) -> Any:
    """Our zero uuid is None in kio."""
    return None if value == bytes(16) else value


KIO_HAS = [golden for golden in GOLDEN if kio_class(golden) is not None]


def test_kio_knows_most_of_the_versions() -> None:
    assert len({(golden.cls, golden.version) for golden in KIO_HAS}) > 400


@pytest.mark.parametrize(
    "name", sorted({golden.cls.__name__ for golden in KIO_HAS}), ids=lambda name: str(name)
)
def test_kio_reads_and_writes_the_same(name: str) -> None:
    from kio.serial import entity_reader, entity_writer

    for golden in KIO_HAS:
        if golden.cls.__name__ != name:
            continue
        cls = kio_class(golden)
        assert cls is not None
        read, size = entity_reader(cls)(golden.data, 0)
        assert size == len(golden.data)
        assert [kio_null(v) for v in values_of(golden.message, golden.version)] == [
            kio_null(v) for v in foreign_values(read)
        ], f"v{golden.version}"
        out = io.BytesIO()
        entity_writer(cls)(out, read)
        assert out.getvalue().hex() == golden.data.hex(), f"v{golden.version}"


# Left out: ListOffsets of aiokafka, whose v4 request has an int64 where the protocol has an int32,
# and ApiVersions of kafka-python, which reads an answer with an error as v0. kio has both.
AIOKAFKA = "admin commit coordination fetch group metadata produce transaction"
KAFKA_PYTHON = (
    "add_offsets_to_txn add_partitions_to_txn admin commit end_txn fetch find_coordinator group "
    "init_producer_id list_offsets metadata offset_for_leader_epoch produce sasl_authenticate "
    "sasl_handshake txn_offset_commit"
)
BROKEN = {"DescribeLogDirsRequest_v0"}  # kafka-python reads one partition instead of an array
OLD_CODECS = [f"aiokafka.protocol.{name}" for name in AIOKAFKA.split()]
OLD_CODECS += [f"kafka.protocol.old.{name}" for name in KAFKA_PYTHON.split()]


def old_classes(module: ModuleType) -> dict[tuple[int, bool, int], type[Any]]:
    """Return the classes of one of the older codecs by API key, "is a request", and version."""
    members: dict[str, Any] = vars(module)
    return {
        (cls.API_KEY, "Request" in name, cls.API_VERSION): cls
        for name, cls in members.items()
        if name[-1].isdigit() and hasattr(cls, "API_VERSION")
    }


@pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated")  # kafka-python, when imported
@pytest.mark.parametrize("name", OLD_CODECS)
def test_older_codecs_read_and_write_the_same(name: str) -> None:
    classes = old_classes(importlib.import_module(name))
    checked = 0
    for golden in GOLDEN:
        if golden.cls.KEY is None or golden.cls.is_flexible(golden.version):
            continue
        request = golden.cls.__name__.endswith("Request")
        cls = classes.get((golden.cls.KEY, request, golden.version))
        if cls is not None and cls.__name__ not in BROKEN:
            read = cls.decode(golden.data)
            values = [getattr(read, field) for field in cls.SCHEMA.names]
            ours = list(values_of(golden.message, golden.version))
            # The least int32 means that no operations were asked for: None for kafka-python.
            assert [None if value == -(2**31) else value for value in ours] == list(
                old_values(values, top=True)
            ), f"{cls.__name__}"
            assert read.encode().hex() == golden.data.hex(), f"{cls.__name__}"
            checked += 1
    assert checked > 0


def old_values(value: Any, *, top: bool = False) -> Iterator[Any]:
    """Yield the plain values of what an older codec read: arrays are lists, structs are tuples."""
    if isinstance(value, list | tuple):
        if isinstance(value, list) and not top:
            yield len(value)
        for item in value:
            yield from old_values(item)
    elif isinstance(value, set):  # of bit numbers
        yield sum(1 << bit for bit in value)
    else:
        yield value
