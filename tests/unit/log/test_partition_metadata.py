"""partition.metadata names the topic by id, in Kafka's text."""

import pytest

from barnabas.log import partition_metadata
from barnabas.model.errors import CorruptFileError
from barnabas.model.ids import uuid_from_text

TEXT = b"version: 0\ntopic_id: vPeOCWypqUOSepEvx0cbog"
TOPIC_ID = uuid_from_text("vPeOCWypqUOSepEvx0cbog")


def test_the_text_is_kafkas():
    assert partition_metadata.encode(TOPIC_ID) == TEXT
    assert partition_metadata.decode(TEXT, "f") == TOPIC_ID
    assert partition_metadata.decode(TEXT + b"\n", "f") == TOPIC_ID


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"version: 1\ntopic_id: vPeOCWypqUOSepEvx0cbog", "f: version '1', must be 0"),
        (b"version: 0", "f: no topic_id, only version"),
        (b"x", "f: line 1 is 'x', must be 'name: value'"),
        (b"version: 0\nxx", "f: line 2 is 'xx', must be 'name: value'"),
        (b"version: 0\ntopic_id: vPeO", "f: topic_id 'vPeO' has 3 bytes; a uuid has 16"),
        (b"version\xff", "f: not UTF-8 at byte 7"),
    ],
)
def test_anything_else_is_rejected(text, why):
    with pytest.raises(CorruptFileError) as raised:
        partition_metadata.decode(text, "f")
    assert str(raised.value) == why


def test_a_damaged_file_is_logged_and_counts_as_missing(open_log, disk, caplog):
    log = open_log(topic_id=TOPIC_ID)
    path = f"{log.directory}/partition.metadata"
    disk.write(path, b"version: 0\nxx")
    assert open_log().topic_id is None
    assert caplog.messages == [
        f"log {log.directory}: topic id unreadable, set again when the partition is assigned: "
        f"{path}: line 2 is 'xx', must be 'name: value'"
    ]


def test_a_log_keeps_its_topic(open_log, disk):
    log = open_log(topic_id=TOPIC_ID)
    assert disk.read(f"{log.directory}/partition.metadata") == TEXT
    assert open_log(topic_id=bytes(16)).topic_id == TOPIC_ID


def test_a_log_without_a_topic_can_be_named_later(open_log, disk):
    log = open_log()
    assert log.topic_id is None
    log.set_topic_id(TOPIC_ID)
    assert open_log().topic_id == TOPIC_ID
    disk.write(f"{log.directory}/partition.metadata", b"")
    assert open_log().topic_id is None
