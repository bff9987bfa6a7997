"""The partition of a group, as every other client and broker computes it."""

from __future__ import annotations

import pytest

from barnabas.metadata.partition_for import java_hash, partition_for


@pytest.mark.parametrize(
    ("name", "expected", "partition"),
    [
        ("group-1", 293427299, 49),
        ("my-group", -1906497762, 12),
        ("test", 3556498, 48),
        ("console-consumer-1", 35782224, 24),
        ("hello", 99162322, 22),
        ("", 0, 0),
    ],
)
def test_known_hashes(name: str, expected: int, partition: int) -> None:
    assert java_hash(name) == expected
    assert partition_for(name, 50) == partition


def test_hash_is_over_utf16_units() -> None:
    # U+1F600 is the pair d83d de00.
    assert java_hash("\U0001f600") == 31 * 0xD83D + 0xDE00


def test_smallest_hash_has_no_absolute_value() -> None:
    name = "polygenelubricants"  # known for exactly this
    assert java_hash(name) == -(2**31)
    assert partition_for(name, 50) == 0
