"""Headers of requests and responses, right and wrong."""

from __future__ import annotations

import pytest

from barnabas.model.errors import LocalProtocolError, RemoteProtocolError
from barnabas.wire.apis import api
from barnabas.wire.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    peek_correlation_id,
)

HEADERS = [
    (7, 0, "00070000" "00000009", ""),
    (1, 4, "00010004" "00000009" "0003636c69", "cli"),
    (1, 12, "0001000c" "00000009" "0003636c69" "00", "cli"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "version", "data", "client_id"), HEADERS)
def test_request_headers(key: int, version: int, data: str, client_id: str) -> None:
    raw = bytes.fromhex(data)
    assert encode_request_header(api(key), version, 9, client_id) == raw
    header, body = decode_request_header(b"...." + raw + b"body", 4)
    assert header == RequestHeader(key, version, 9, client_id)
    assert body == 4 + len(raw)


def test_a_null_client_id_reads_as_the_empty_string() -> None:
    raw = encode_request_header(api(3), 1, 5, None)
    assert raw.hex() == "00030001" "00000005" "ffff"  # fmt: skip
    assert decode_request_header(raw)[0].client_id == ""


def test_tags_of_peers_are_skipped() -> None:
    raw = encode_request_header(api(3), 12, 5, "c")[:-1] + b"\x01\x05\x02ab"
    assert decode_request_header(raw)[1] == len(raw)
    assert decode_response_header(b"\x00\x00\x00\x05\x01\x05\x02ab!", api(3), 12) == (5, 9)


def test_an_unknown_version_is_left_to_the_caller() -> None:
    data = bytes.fromhex("00120063 00000001 000161 00 ff")
    header, body = decode_request_header(data)
    assert (header.api_key, header.api_version, body) == (18, 99, 12)


@pytest.mark.parametrize(("key", "version", "data", "_"), HEADERS)
def test_a_header_cut_anywhere_is_refused(key: int, version: int, data: str, _: str) -> None:
    raw = bytes.fromhex(data)
    for cut in range(len(raw)):
        with pytest.raises(RemoteProtocolError):
            decode_request_header(raw[:cut])


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("03e70000" "00000009", "no API has the key 999"),
        ("00010004" "00000009" "fffe", "size -2"),
        ("00010004" "00000009" "7fff61", "size 32767"),
        ("00010004" "00000009" "0001ff", "utf-8"),
        ("0001000c" "00000009" "0000" "02" "0100" "0100", "tag 1 comes after tag 1"),
    ],
)  # fmt: skip
def test_a_header_that_breaks_the_rules_is_refused(data: str, problem: str) -> None:
    with pytest.raises(RemoteProtocolError, match=problem):
        decode_request_header(bytes.fromhex(data))


def test_a_client_id_that_is_too_long_is_ours_to_refuse() -> None:
    with pytest.raises(LocalProtocolError, match="32767"):
        encode_request_header(api(3), 1, 5, "x" * 32768)


@pytest.mark.parametrize(
    ("key", "version", "data"), [(1, 4, "00000009"), (1, 12, "0000000900"), (18, 3, "00000009")]
)
def test_response_headers(key: int, version: int, data: str) -> None:
    raw = bytes.fromhex(data)
    assert decode_response_header(raw + b"body", api(key), version) == (9, len(raw))
    assert peek_correlation_id(raw) == 9
    for cut in range(len(raw)):
        with pytest.raises(RemoteProtocolError):
            decode_response_header(raw[:cut], api(key), version)
    with pytest.raises(RemoteProtocolError):
        peek_correlation_id(b"\x00")
