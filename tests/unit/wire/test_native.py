"""The C codecs and their Python twins give the same results, for right and for wrong input."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.wire.samples import random_message

from barnabas import kernels
from barnabas.wire.codec import UNREADABLE, UNWRITABLE, python_decoder, python_encoder
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.native import HOT, native_function

hot = pytest.importorskip("barnabas.wire.hot", reason="the C codecs are not compiled")

CLASSES: list[type[Any]] = [
    ProduceRequest,
    ProduceResponse,
    FetchRequest,
    FetchResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
]
twins = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def native(verb: str, cls: type[Any]) -> Any:
    return getattr(hot, f"{verb}_{HOT[cls.__name__]}")


def written(encode: Any, message: Any, version: int) -> bytes | None:
    """Return the encoding, or None if it is refused."""
    parts: list[Any] = []
    try:
        encode(message, parts, version)
    except UNWRITABLE:
        return None
    return b"".join(parts)


def read(decode: Any, data: Any, version: int) -> Any:
    """Return the message and its end, or None if it is refused."""
    try:
        return decode(data, 0, version)
    except UNREADABLE:
        return None


@twins
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_both_write_and_read_the_same(cls: type[Any], seed: int) -> None:
    source = Random(seed)
    for version in range(cls.VERSIONS.first, cls.VERSIONS.last + 1):
        message = random_message(cls, version, source)
        data = written(python_encoder(cls, version).encode, message, version)
        assert data is not None
        assert written(native("encode", cls), message, version) == data
        for buffer in (data, bytearray(data), memoryview(data)):
            assert read(native("decode", cls), buffer, version) == (message, len(data))


@twins
def test_both_refuse_the_same_cuts(cls: type[Any]) -> None:
    for version in range(cls.VERSIONS.first, cls.VERSIONS.last + 1):
        message = random_message(cls, version, Random(version))
        data = written(native("encode", cls), message, version)
        assert data is not None
        for cut in range(len(data)):
            assert read(native("decode", cls), data[:cut], version) is None
            assert read(python_decoder(cls, version).decode, data[:cut], version) is None


@twins
def test_both_judge_damaged_bytes_alike(cls: type[Any]) -> None:
    source = Random(7)
    for version in range(cls.VERSIONS.first, cls.VERSIONS.last + 1):
        data = written(native("encode", cls), random_message(cls, version, source), version)
        assert data is not None
        for _ in range(150):
            damaged = bytearray(data)
            for _ in range(source.choice([1, 1, 2, 5])):
                damaged[source.randrange(len(damaged))] = source.choice([0, 1, 0x7F, 0x80, 0xFF])
            expected = read(python_decoder(cls, version).decode, damaged, version)
            assert read(native("decode", cls), damaged, version) == expected, damaged.hex()


@twins
def test_both_refuse_the_same_values(cls: type[Any]) -> None:
    wrong: list[Any] = [None, "text", b"bytes", 2**63, -(2**63) - 1, 40_000, 1.5, [], [7], object()]
    refused = 0
    for version in range(cls.VERSIONS.first, cls.VERSIONS.last + 1):
        for f in cls.FIELDS:
            for value in wrong:
                message = cls(**{f.name: value})
                expected = written(python_encoder(cls, version).encode, message, version)
                assert written(native("encode", cls), message, version) == expected, (
                    f"v{version} {f.name}={value!r}"
                )
                refused += expected is None
    assert refused > 100


@pytest.mark.parametrize("size", [0, 400, 512, 513, 3000])
def test_both_write_the_same_whether_records_are_copied_or_kept(size: int) -> None:
    """Short records fill pieces of a bounded size, long ones are pieces of their own."""
    partitions = [
        PartitionData(
            partition_index=index,
            current_leader=LeaderIdAndEpoch(leader_id=index),
            records=bytes([index]) * size,
        )
        for index in range(200)
    ]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    parts: list[Any] = []
    hot.encode_fetch_response(response, parts, 12)
    expected = written(python_encoder(FetchResponse, 12).encode, response, 12)
    assert b"".join(parts) == expected
    assert max(map(len, parts)) <= 40_000
    assert any(part is partitions[7].records for part in parts) == (size > 512)


def test_an_object_of_another_class_is_refused() -> None:
    """Slots are read by their offset: another class must never get that far."""
    impostor: Any = PartitionData()
    with pytest.raises(TypeError):
        hot.encode_fetch_response(impostor, [], 12)
    with pytest.raises(TypeError):
        hot.encode_fetch_response(FetchResponse(responses=[impostor]), [], 12)
    message = FetchResponse()
    del message.session_id
    with pytest.raises(AttributeError):
        hot.encode_fetch_response(message, [], 12)


def test_positions_outside_the_buffer_are_refused() -> None:
    for position in (-1, 5, 2**40):
        with pytest.raises(IndexError):
            hot.decode_fetch_request(b"abcd", position, 12)


@twins
def test_objects_are_let_go(cls: type[Any]) -> None:
    """Slots are filled by hand, so references are counted by hand: none may be left over."""
    version = cls.VERSIONS.last
    message = random_message(cls, version, Random(3))
    encoded: list[Any] = []
    native("encode", cls)(message, encoded, version)
    data = b"".join(encoded)

    def work() -> None:
        for _ in range(200):
            native("decode", cls)(data, 0, version)
            native("encode", cls)(message, [], version)
            for cut in (1, len(data) // 2, len(data) - 1):
                assert read(native("decode", cls), data[:cut], version) is None

    work()
    tracemalloc.start()
    try:
        growths = []
        for _ in range(3):
            before = held_bytes()
            work()
            growths.append(held_bytes() - before)
        assert min(growths) < 4000, "a reference left over shows in every round"
    finally:
        tracemalloc.stop()


def held_bytes() -> int:
    """Return what was allocated from this file and is still there, whatever other threads do."""
    gc.collect()
    here = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, __file__)])
    return sum(trace.size for trace in here.traces)


def test_the_choice_follows_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "NAME", "python")
    assert native_function("decode", FetchRequest) is None
    monkeypatch.setattr(kernels, "NAME", "cython")
    assert native_function("decode", FetchRequest) is hot.decode_fetch_request
    assert native_function("encode", FetchRequest) is hot.encode_fetch_request
    assert native_function("encode", JoinGroupRequest) is None


@pytest.mark.parametrize("name", ["python", "cython"])
def test_the_environment_forces_the_choice(name: str) -> None:
    program = (
        "from barnabas.wire.messages.fetch import FetchRequest\n"
        "from barnabas.wire.codec import decode, encode\n"
        "decode(FetchRequest, encode(FetchRequest(), 12), 12)\n"
        "print(type(FetchRequest.DECODERS[12]).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"BARNABAS_KERNELS": name},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = "function" if name == "python" else "cython_function_or_method"
    assert done.stdout.strip() in (expected, "builtin_function_or_method")
    assert (done.stdout.strip() == "function") == (name == "python")
