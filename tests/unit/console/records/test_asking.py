"""A topic as its user may read and write it."""

from __future__ import annotations

import pytest
from tests.unit.console.records.putting import put
from tests.unit.console.site import Site

from barnabas.console.records.asking import Topic, TopicAccess
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import EARLIEST, LATEST
from barnabas.records.builder import build_batch


def access(site: Site, name: str) -> TopicAccess:
    return TopicAccess(site.door, site.door.anonymous("127.0.0.1"), name)


def test_partitions_by_leader() -> None:
    topic = Topic("t", False, {0: 1, 1: 2, 2: -1, 3: 1})
    assert topic.led_by(range(5)) == {1: [0, 3], 2: [1]}


def test_offsets_reads_and_writes(site: Site) -> None:
    site.create_topic("asked", 2)
    put(site, "asked", [(100, None, b"a", ()), (200, None, b"b", ())])
    topic = access(site, "asked")
    assert site.run(topic.offsets([0, 1], EARLIEST)) == {0: 0, 1: 0}
    assert site.run(topic.offsets([0, 1], LATEST)) == {0: 2, 1: 0}
    assert site.run(topic.offsets([0, 1], 150)) == {0: 1, 1: -1}
    assert site.run(topic.spans([0, 1, 9])) == {0: (0, 2), 1: (0, 0)}
    batch = build_batch([(300, None, b"c", ())])
    assert site.run(topic.produce(0, batch)) == 2
    fetched = site.run(topic.fetch(0, 2, 1 << 20))
    assert (bytes(fetched.data[61:]), fetched.high_watermark) == (batch[61:], 3)


def test_errors_have_their_codes(site: Site) -> None:
    with pytest.raises(RequestError) as failed:
        site.run(access(site, "no-such-topic").topic())
    assert failed.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    site.create_topic("empty")
    with pytest.raises(RequestError) as failed:
        site.run(access(site, "empty").fetch(0, 5, 1 << 20))
    assert failed.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    with pytest.raises(RequestError) as failed:
        site.run(access(site, "empty").produce(4, build_batch([(1, None, b"", ())])))
    assert failed.value.code is ErrorCode.LEADER_NOT_AVAILABLE
