"""Partitions of keys; tests/compat compares the hashes with confluent-kafka's."""

from __future__ import annotations

import pytest

from barnabas.compat.confluent_kafka.partitioners import choice, consistent, fnv1a, murmur2
from barnabas.compat.confluent_kafka.properties import PARTITIONERS


def test_hashes() -> None:
    assert [consistent(b"key", 7), murmur2(b"key", 7), fnv1a(b"key", 7)] == [5, 4, 4]


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_partitioner_chooses_a_partition_or_leaves_it_to_the_batches(name: str) -> None:
    choose = choice(name)
    keyed = {choose(b"%d" % number, 5) for number in range(200)}
    assert keyed == ({None} if name == "random" else set(range(5)))
    without = choose(None, 5)
    assert (without is None) == (name == "random" or name.endswith("_random"))


def test_an_empty_key() -> None:
    assert {choice("consistent_random")(b"", 3) for _ in range(200)} == {0, 1, 2}
    assert len({choice("murmur2_random")(b"", 3) for _ in range(20)}) == 1
    assert choice("consistent")(None, 3) == consistent(b"", 3)
