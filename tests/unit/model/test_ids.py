"""Uuids and topic partitions: text forms, and what is never given out."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import (
    METADATA_UUID,
    ZERO_UUID,
    TopicPartition,
    new_uuid,
    uuid_from_text,
    uuid_text,
)


@given(st.binary(min_size=16, max_size=16))
def test_a_uuid_survives_its_text(uuid: bytes) -> None:
    text = uuid_text(uuid)
    assert len(text) == 22
    assert uuid_from_text(text) == uuid


def test_known_uuids_have_kafkas_text() -> None:
    assert uuid_text(ZERO_UUID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(METADATA_UUID) == "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAAA",
        "A" * 21,
        "A" * 24,
        "A" * 23,
        "é" * 22,
        "!" + "A" * 22,
        "A" * 11 + "\n" + "A" * 11,
    ],
)
def test_what_is_no_uuid_is_refused_by_its_text(text: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        uuid_from_text(text)
    assert repr(text) in str(caught.value)


@given(st.binary(min_size=16, max_size=16))
def test_a_new_uuid_is_random_and_of_version_4(raw: bytes) -> None:
    drawn = iter([raw, bytes(16)])
    uuid = new_uuid(lambda size: next(drawn)[:size])
    assert uuid[6] >> 4 == 4
    assert uuid[8] >> 6 == 2
    assert not uuid_text(uuid).startswith("-")


def test_a_uuid_that_looks_like_an_option_is_drawn_again() -> None:
    drawn = iter([b"\xfb" + bytes(15), b"\x01" * 16])
    uuid = new_uuid(lambda size: next(drawn))
    assert uuid[0] == 1


def test_a_topic_partition_is_a_tuple_with_kafkas_directory_name() -> None:
    partition = TopicPartition("events", 3)
    assert str(partition) == "events-3"
    assert partition == ("events", 3)
    assert pickle.loads(pickle.dumps(partition)) == partition
    ordered = sorted([TopicPartition("b", 0), TopicPartition("a", 10), TopicPartition("a", 9)])
    assert list(map(str, ordered)) == ["a-9", "a-10", "b-0"]
