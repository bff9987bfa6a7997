"""murmur2 must agree with every other client, or keys would change their partition."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import ModuleType as Kernels

import pytest
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_known_values(kernels: Kernels, key: bytes, hashed: int) -> None:
    assert kernels.murmur2(key) == hashed
    assert kernels.murmur2(memoryview(bytearray(key))) == hashed


@pytest.fixture(scope="module")
def kafka_python() -> Callable[[bytes], int]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of its own imports
        from kafka.partitioner.default import murmur2
    return murmur2  # type: ignore[no-any-return]


@given(st.binary(max_size=40))
def test_twins_agree_with_each_other_and_with_kafka_python(
    twins: tuple[Kernels, Kernels], kafka_python: Callable[[bytes], int], key: bytes
) -> None:
    reference, compiled = twins
    assert reference.murmur2(key) == compiled.murmur2(key)
    assert reference.murmur2(key) & 0xFFFFFFFF == kafka_python(key) & 0xFFFFFFFF
