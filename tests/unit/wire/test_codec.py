"""Encoding and decoding every message in every version, whole, cut, and wrong."""

from __future__ import annotations

import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.wire.samples import all_messages, random_message

from barnabas.model.errors import LocalProtocolError, RemoteProtocolError
from barnabas.wire.codec import decode, encode, encode_parts
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.describe_client_quotas import DescribeClientQuotasResponse
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.schema import Message, Struct, field, message, struct

messages = pytest.mark.parametrize("cls", all_messages(), ids=lambda cls: cls.__name__)


def versions_of(cls: type[Message]) -> range:
    return range(cls.VERSIONS.first, cls.VERSIONS.last + 1)


@messages
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_is_written_is_read_back(cls: type[Any], seed: int) -> None:
    source = Random(seed)
    for version in versions_of(cls):
        message = random_message(cls, version, source)
        data = encode(message, version)
        assert decode(cls, data, version) == (message, len(data))


def refusal(cls: type[Any], data: bytes, version: int) -> str:
    """Return why bytes are refused; `pytest.raises` would be too slow for so many of them."""
    try:
        decode(cls, data, version)
    except RemoteProtocolError as refused:
        return str(refused)
    return "nothing was refused"


@messages
def test_a_message_cut_anywhere_is_refused(cls: type[Any]) -> None:
    for version in versions_of(cls):
        data = encode(random_message(cls, version, Random(version), sizes=(0, 1, 4)), version)
        for cut in range(len(data)):
            assert f"{cls.__name__} v{version}" in refusal(cls, data[:cut], version)


def test_decoding_starts_at_a_position_and_tells_where_it_ended() -> None:
    data = encode(ListGroupsRequest(states_filter=["Stable"]), 4)
    message, end = decode(ListGroupsRequest, b"head" + data + b"tail", 4, 4)
    assert message == ListGroupsRequest(states_filter=["Stable"])
    assert end == 4 + len(data)


def test_threads_that_meet_at_the_first_use_do_not_harm_each_other() -> None:
    @struct
    class Item(Struct):
        name: str = field("string")

    @message(versions="0-3", flexible="2+")
    class Fresh(Message):
        items: list[Item] = field([Item])

    barrier = threading.Barrier(8)

    def work(version: int) -> bool:
        barrier.wait()
        made = Fresh(items=[Item(name="x")])
        return decode(Fresh, encode(made, version), version)[0] == made

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, [0, 1, 2, 3] * 2))


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="no version 6; supported: 0 to 5"):
        encode(ListGroupsRequest(), 6)
    with pytest.raises(LocalProtocolError, match="no version -1"):
        decode(ListGroupsRequest, b"", -1)


def test_a_field_that_the_version_lacks_is_refused_by_name() -> None:
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    with pytest.raises(
        LocalProtocolError, match="MetadataRequest v3: allow_auto_topic_creation cannot be written"
    ):
        encode(request, 3)
    assert encode(request, 4) == b"\x00\x00\x00\x00\x00"


def test_an_ignorable_field_is_left_out_where_the_version_lacks_it() -> None:
    request = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    assert encode(request, 0) == b""


def test_null_is_refused_where_the_version_has_none() -> None:
    with pytest.raises(LocalProtocolError, match="MetadataRequest v0: topics"):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(LocalProtocolError, match=r"MetadataRequest v9: topics\.name"):
        encode(MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 9)
    assert encode(MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 10)
    with pytest.raises(RemoteProtocolError, match="MetadataRequest v0: topics: its count is -1"):
        decode(MetadataRequest, b"\xff\xff\xff\xff", 0)
    with pytest.raises(RemoteProtocolError, match=r"ListGroupsRequest v4: states_filter"):
        decode(ListGroupsRequest, b"\x00\x00", 4)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, "7", None, 1.5])
def test_numbers_out_of_range_are_refused_by_name(value: Any) -> None:
    with pytest.raises(LocalProtocolError, match=r"ProduceRequest v9: (acks|timeout_ms)"):
        encode(ProduceRequest(timeout_ms=value), 9)


def test_strings_longer_than_their_length_field_are_refused() -> None:
    topic = MetadataRequestTopic(name="x" * 32768)
    with pytest.raises(LocalProtocolError, match=r"MetadataRequest v1: topics\.name"):
        encode(MetadataRequest(topics=[topic]), 1)
    # Compact strings have room for them.
    data = encode(MetadataRequest(topics=[topic]), 9)
    assert decode(MetadataRequest, data, 9)[0].topics == [topic]


def test_a_uuid_of_another_size_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="a uuid has 16 bytes"):
        encode(MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"short")]), 10)


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match=r"MetadataRequest v0: topics.name: 'utf-8'"):
        decode(MetadataRequest, b"\x00\x00\x00\x01\x00\x02\xc3\x28", 0)


def test_a_surrogate_is_not_written() -> None:
    with pytest.raises(LocalProtocolError, match=r"MetadataRequest v0: topics.name"):
        encode(MetadataRequest(topics=[MetadataRequestTopic(name="\ud800")]), 0)


def test_tags_out_of_order_or_twice_are_refused() -> None:
    def answer(*tags: bytes) -> bytes:
        return b"\x00\x00\x01\x00\x00\x00\x00" + bytes([len(tags)]) + b"".join(tags)

    epoch = b"\x01\x08" + bytes(7) + b"\x05"
    ready = b"\x03\x01\x01"
    message, _ = decode(ApiVersionsResponse, answer(epoch, ready), 3)
    assert (message.finalized_features_epoch, message.zk_migration_ready) == (5, True)
    for wrong in (answer(ready, epoch), answer(epoch, epoch)):
        with pytest.raises(RemoteProtocolError, match="comes after tag"):
            decode(ApiVersionsResponse, wrong, 3)
    with pytest.raises(RemoteProtocolError, match="tag 3 has another size"):
        decode(ApiVersionsResponse, answer(b"\x03\x02\x01\x01"), 3)


def test_unknown_tags_are_skipped() -> None:
    data = b"\x02a\x02b" + b"\x02" + b"\x07\x03xyz" + b"\xff\x01\x00"
    message, end = decode(ApiVersionsRequest, data, 3)
    assert (message.client_software_name, message.client_software_version) == ("a", "b")
    assert end == len(data)
    with pytest.raises(RemoteProtocolError, match="tag 7 of 100 bytes does not fit"):
        decode(ApiVersionsRequest, b"\x02a\x02b\x01\x07\x64xyz", 3)


def test_booleans_read_any_byte_but_zero_as_true() -> None:
    request, _ = decode(MetadataRequest, b"\x00\x00\x00\x00\x02", 4)
    assert request.allow_auto_topic_creation is True


@pytest.mark.parametrize("cls", [MetadataRequest, FetchRequest, FetchResponse, ProduceRequest])
def test_a_huge_count_takes_no_memory(cls: type[Any]) -> None:
    """A count is held against the bytes that remain before anything is made."""
    prefix = {
        MetadataRequest: b"",
        FetchRequest: bytes(37),
        FetchResponse: bytes(10),
        ProduceRequest: b"\x00" + bytes(6),
    }[cls]
    version = 12 if cls is not ProduceRequest else 9
    data = prefix + b"\xff\xff\xff\xff\x07" + bytes(100)
    tracemalloc.start()
    try:
        with pytest.raises(RemoteProtocolError):
            decode(cls, data, version)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_records_are_views_into_the_frame() -> None:
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic="t", partitions=[PartitionData(records=b"abc")])]
    )
    frame = bytearray(encode(response, 4))
    read, _ = decode(FetchResponse, frame, 4)
    records = read.responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    frame[frame.index(b"abc")] = ord("z")
    assert bytes(records) == b"zbc"


def test_long_records_are_pieces_of_their_own() -> None:
    records = memoryview(bytes(100_000))
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])]
    )
    parts = encode_parts(response, 11)
    assert any(part is records for part in parts)
    assert b"".join(parts) == encode(response, 11)


def test_what_only_has_a_length_may_stand_for_records() -> None:
    class Slice:
        def __len__(self) -> int:
            return 1000

    records: Any = Slice()
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic="t", partitions=[PartitionData(records=records)])]
    )
    parts = encode_parts(response, 4)
    place = parts.index(records)
    with_bytes = [*parts[:place], bytes(1000), *parts[place + 1 :]]
    response.responses[0].partitions[0].records = bytes(1000)
    assert b"".join(with_bytes) == encode(response, 4)
    response.responses[0].partitions[0].records = records
    with pytest.raises(LocalProtocolError, match="not bytes-like"):
        encode(response, 4)


def test_a_tagged_struct_of_defaults_is_not_written() -> None:
    partition = PartitionData(records=b"")
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[partition])])
    without = encode(response, 12)
    partition.current_leader = type(partition).FIELDS[6].struct()  # type: ignore[misc, assignment]
    assert encode(response, 12) == without


def test_floats_keep_their_bits() -> None:
    cls = DescribeClientQuotasResponse
    for version in versions_of(cls):
        message = random_message(cls, version, Random(1))
        assert decode(cls, encode(message, version), version)[0] == message
