"""The shape of compiled encoders: straight lines, runs of values packed at once, honest labels."""

from __future__ import annotations

import pytest
from tests.unit.wire.samples import all_versions

from barnabas.model.errors import LocalProtocolError
from barnabas.wire.codec import encode
from barnabas.wire.encoder import EncoderSource
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest


def test_neighbouring_values_of_fixed_size_are_packed_at_once() -> None:
    text = EncoderSource(FetchRequest, 11).text
    packed = next(line for line in text.splitlines() if "m.max_wait_ms" in line)
    assert packed.count("pack_") == 1
    assert "m.session_epoch, len(" in packed


def test_every_line_has_a_label() -> None:
    for cls, version in all_versions():
        source = EncoderSource(cls, version)
        assert len(source.labels) == len(source.text.splitlines())


def test_a_packed_run_is_labelled_with_all_its_fields() -> None:
    with pytest.raises(LocalProtocolError, match="v0: generation_id, member_id cannot be written"):
        encode(HeartbeatRequest(generation_id=2**40), 0)


def test_versions_that_lack_a_field_check_that_it_has_its_default() -> None:
    assert "group_instance_id is not None" in EncoderSource(HeartbeatRequest, 0).text
    assert "group_instance_id is not None" not in EncoderSource(HeartbeatRequest, 3).text
