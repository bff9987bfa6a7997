"""Whole frames, byte for byte."""

from __future__ import annotations

import struct
from typing import cast

import pytest

from barnabas.model.errors import LocalProtocolError
from barnabas.wire.apis import api
from barnabas.wire.codec import decode, encode_parts
from barnabas.wire.frame import (
    decode_response,
    request_frame,
    response_frame,
    response_parts,
)
from barnabas.wire.header import decode_request_header
from barnabas.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from barnabas.wire.messages.controlled_shutdown import ControlledShutdownRequest
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

REQUEST = "00000017 0012 0003 00000007 0003636c69 00 0470796b 04302e31 00"
ANSWER = "0000001a 00000007 0000 03 0000 0000 0009 00 0012 0000 0003 00 00000000 00"
TOO_NEW = "00000010 00000007 0023 00000001 0012 0000 0003"


def test_an_api_versions_request() -> None:
    request = ApiVersionsRequest(client_software_name="pyk", client_software_version="0.1")
    frame = request_frame(request, 3, 7, "cli")
    assert frame == bytes.fromhex(REQUEST)
    header, body = decode_request_header(frame, 4)
    assert header == (18, 3, 7, "cli")
    assert decode(ApiVersionsRequest, frame, 3, body) == (request, len(frame))


def test_an_api_versions_response_keeps_the_oldest_header() -> None:
    response = ApiVersionsResponse(
        api_keys=[ApiVersion(api_key=0, max_version=9), ApiVersion(api_key=18, max_version=3)]
    )
    frame = response_frame(response, 3, 7)
    assert frame == bytes.fromhex(ANSWER)
    assert decode_response(api(18), 3, frame[4:]) == (7, response)


def test_the_answer_to_a_version_that_is_too_new() -> None:
    response = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(api_key=18, max_version=3)])
    assert response_frame(response, 0, 7) == bytes.fromhex(TOO_NEW)


def test_a_controlled_shutdown_of_the_first_version_has_no_client_id() -> None:
    frame = request_frame(ControlledShutdownRequest(broker_id=5), 0, 1, "ignored")
    assert frame == bytes.fromhex("0000000c 0007 0000 00000001 00000005")


def test_pieces_join_to_the_frame() -> None:
    records = memoryview(bytes(70_000))
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])]
    )
    parts = response_parts(response, 12, 3)
    assert any(part is records for part in parts)
    assert b"".join(parts) == response_frame(response, 12, 3)
    assert struct.unpack_from(">i", parts[0])[0] == sum(map(len, parts)) - 4


def test_a_body_that_was_encoded_before_is_not_encoded_again() -> None:
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[])])
    body = encode_parts(response, 12)
    response.responses = []
    parts = response_parts(response, 12, 3, body)
    assert b"".join(parts) != response_frame(response, 12, 3)
    response.responses = [FetchableTopicResponse(topic="t", partitions=[])]
    assert b"".join(parts) == response_frame(response, 12, 3)


def test_an_answer_that_no_frame_can_tell_the_size_of() -> None:
    """Two slices of files may together be more than an int32 holds."""

    class Slice:
        def __len__(self) -> int:
            return 2**30

    partitions = [PartitionData(records=cast(bytes, Slice())) for _ in range(2)]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=partitions)])
    with pytest.raises(
        LocalProtocolError, match=r"FetchResponse of 21474.* exceeds the frame limit"
    ):
        response_parts(response, 12, 1)
