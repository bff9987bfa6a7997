"""The codes in a response are counted, each once, as its version has them."""

from __future__ import annotations

from typing import Any

from barnabas.broker.network.response_errors import error_lines
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.apis import APIS
from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from barnabas.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.messages.offset_fetch import OffsetFetchResponse
from barnabas.wire.schema import Message


def counted(response: Message, version: int) -> tuple[int, dict[int, int]]:
    lines = "\n".join(error_lines(type(response), version))
    names: dict[str, Any] = {"failed": {}}
    exec(f"def count(response):\n    none = 0\n{lines}\n    return none", names)
    return names["count"](response), names["failed"]


def test_the_codes_of_a_response_and_of_each_partition_are_counted() -> None:
    partitions = [PartitionData(error_code=code) for code in (0, 0, 1, 6, 6)]
    topics = [
        FetchableTopicResponse(topic="a", partitions=partitions[:2]),
        FetchableTopicResponse(topic="b", partitions=partitions[2:]),
    ]
    assert counted(FetchResponse(responses=topics), 12) == (3, {1: 1, 6: 2})


def test_the_last_code_of_a_response_is_known() -> None:
    lines = "\n".join(error_lines(FetchResponse, 12))
    names: dict[str, Any] = {"failed": {}}
    exec(f"def last(response):\n    none = error = 0\n{lines}\n    return error", names)
    partitions = [PartitionData(error_code=code) for code in (1, 6, 0)]
    topics = [FetchableTopicResponse(topic="a", partitions=partitions)]
    assert names["last"](FetchResponse(responses=topics)) == 6
    assert names["last"](FetchResponse()) == 0


def test_a_code_that_the_version_lacks_is_not_counted() -> None:
    """Before v7 a fetch had no code of its own."""
    assert counted(FetchResponse(), 6) == (0, {})
    assert counted(FetchResponse(), 7) == (1, {})
    assert counted(OffsetFetchResponse(), 1) == (0, {})
    assert counted(OffsetFetchResponse(), 2) == (1, {})


def test_codes_of_an_enum_and_plain_ones_are_the_same() -> None:
    topic = MetadataResponseTopic(
        error_code=ErrorCode.LEADER_NOT_AVAILABLE,
        partitions=[MetadataResponsePartition(error_code=5), MetadataResponsePartition()],
    )
    assert counted(MetadataResponse(topics=[topic]), 9) == (1, {5: 2})


def test_every_response_can_be_counted_in_every_version() -> None:
    for api in APIS:
        for version in range(api.versions.first, api.versions.last + 1):
            none, failed = counted(api.response(), version)
            assert none in (0, 1), (api, version)
            assert failed == {}
