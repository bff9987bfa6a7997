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
    "text", [b"version: 1\ntopic_id: vPeOCWypqUOSepEvx0cbog", b"version: 0", b"x", b"\xff"]
)
def test_anything_else_is_refused(text):
    with pytest.raises(CorruptFileError):
        partition_metadata.decode(text, "f")


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
