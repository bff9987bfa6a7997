"""Changes of topics and configs that meet each other: each is whole, none is in another's way."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from tests.unit.broker import neighbours
from tests.unit.broker.handlers.test_configs import SET, TOPIC, change, value_of
from tests.unit.broker.serving import (
    Serving,
    Wire,
    batch_of,
    create_topic,
    metadata,
    produce,
)

from barnabas.coordination.memory import MemoryStore
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


def delete(wire: Wire, name: str) -> int:
    """Delete a topic and return the code."""
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=60_000)
    code: int = wire.ask(request, 6).responses[0].error_code
    return code


def test_configs_and_deletions_meet(tmp_path: Path) -> None:
    """A config that is set while its topic goes away leaves nothing behind in the tree."""
    with Serving(tmp_path) as serving:
        codes: set[int] = set()
        ended = threading.Event()

        def configure(wire: Wire) -> None:
            while not ended.is_set():
                codes.add(change(wire, TOPIC, "t", ("retention.ms", SET, "5000")).error_code)

        threads = [threading.Thread(target=configure, args=(serving.connect(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            with serving.connect() as wire:
                for _ in range(15):
                    create_topic(wire, "t")
                    assert delete(wire, "t") == 0
        finally:
            ended.set()
            for thread in threads:
                thread.join(60)
        assert codes <= {0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        with serving.connect() as wire:
            create_topic(wire, "t")
            assert value_of(wire, TOPIC, "t", "retention.ms")[1] != 1, "it was set before"


def test_appends_and_deletions_meet(tmp_path: Path) -> None:
    """Producers of a topic that comes and goes get offsets or errors, with and without flushes."""
    with Serving(tmp_path, {"file.delete.delay.ms": 0}) as serving:
        codes: set[int] = set()
        ended = threading.Event()

        def append(wire: Wire) -> None:
            while not ended.is_set():
                codes.add(produce(wire, "t", batch_of(["x"]), acks=-1).error_code)

        threads = [threading.Thread(target=append, args=(serving.connect(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            with serving.connect() as wire:
                for number in range(16):
                    flush = {"flush.messages": "1"} if number % 2 else {}
                    create_topic(wire, "t", 1, flush)
                    produce(wire, "t", batch_of(["x"]))
                    assert delete(wire, "t") == 0
        finally:
            ended.set()
            for thread in threads:
                thread.join(60)
        assert codes <= {0, 3, 6}
        assert 0 in codes


def test_automatic_creation_by_many(tmp_path: Path) -> None:
    """Many clients that ask for one missing topic at once all get the same one."""
    with Serving(tmp_path) as serving:
        found: list[bytes] = []

        def ask(wire: Wire) -> None:
            (topic,) = metadata(wire, "made", create=True).topics
            assert topic.error_code == 0
            found.append(topic.topic_id)

        threads = [threading.Thread(target=ask, args=(serving.connect(),)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(found) == 12
        assert len(set(found)) == 1


def test_internal_topics_wait_for_the_workers_that_are_to_have_them(tmp_path: Path) -> None:
    """A client that is early must not get a topic with one replica, which would stay so."""

    async def story() -> None:
        store = MemoryStore()
        options = {"barnabas_workers": "2", "offsets_topic_replication_factor": "3"}
        first = neighbours.broker(store, tmp_path, 1, **options)
        second = neighbours.broker(store, tmp_path, 2, **options)
        await first.start()
        offsets = NewTopic("__consumer_offsets", 1, 3)
        with pytest.raises(RequestError, match="1 of 2 workers run") as caught:
            await first.topics.create_internal(offsets)
        assert caught.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        await first.topics.create_automatically("t")  # one replica is what it is to have
        await second.start()
        await neighbours.until(lambda: len(first.cluster.brokers) == 2, "both are known")
        await first.topics.create_internal(offsets)
        created = first.cluster.topic("__consumer_offsets")
        assert created is not None
        assert sorted(created.partitions[0].replicas) == [1, 2]
        await second.stop()
        await first.stop()

    asyncio.run(story())
