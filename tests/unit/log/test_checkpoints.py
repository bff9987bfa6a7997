"""Checkpoint files: Kafka's text, and never a torn one taken for a short one."""

import pytest

from barnabas.log.checkpoints import (
    decode_offsets,
    encode_offsets,
    read_offsets,
    write_offsets,
)
from barnabas.log.files import DiskFiles
from barnabas.model.errors import CorruptFileError
from barnabas.model.ids import TopicPartition

OFFSETS = {TopicPartition("orders", 0): 4711, TopicPartition("a.b-c", 12): 0}
TEXT = b"0\n2\norders 0 4711\na.b-c 12 0\n"


def test_the_text_is_kafkas():
    assert encode_offsets(OFFSETS) == TEXT
    assert decode_offsets(TEXT, "f") == OFFSETS


def test_missing_and_empty_files_hold_nothing(tmp_path):
    assert read_offsets(DiskFiles(), f"{tmp_path}/none") == {}
    assert decode_offsets(b"", "f") == {}
    assert decode_offsets(b"0\n0\n", "f") == {}


def test_written_offsets_read_back(tmp_path):
    write_offsets(DiskFiles(), f"{tmp_path}/c", OFFSETS)
    assert read_offsets(DiskFiles(), f"{tmp_path}/c") == OFFSETS


@pytest.mark.parametrize(
    "text",
    [
        b"1\n0\n",
        b"0\n",
        b"0\nx\n",
        b"0\n2\norders 0 1\n",
        b"0\n1\norders 0 1\norders 1 1\n",
        b"0\n1\norders 0\n",
        b"0\n1\norders zero 1\n",
        b"\xff\xfe",
    ],
)
def test_what_does_not_add_up_is_refused(text):
    with pytest.raises(CorruptFileError):
        decode_offsets(text, "f")
