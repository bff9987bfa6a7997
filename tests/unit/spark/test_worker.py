"""A worker lends a consumer to one task after another, unless one of them failed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")
pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

from barnabas.errors import IllegalStateError
from barnabas.spark.worker import IDLE_MAX, ConsumerPool, consumer_pool, freeze_modules


def test_all_tasks_share_one_pool() -> None:
    assert consumer_pool() is consumer_pool()


def test_only_workers_freeze_their_modules() -> None:
    before = gc.get_freeze_count()
    freeze_modules()
    assert gc.get_freeze_count() == before


@pytest.fixture
def consumers() -> Iterator[ConsumerPool]:
    kept = ConsumerPool()
    yield kept
    kept.close()


def options(bootstrap: str, **more: str) -> dict[str, str]:
    return {"bootstrap.servers": bootstrap, **more}


def test_a_consumer_is_given_out_again(consumers: ConsumerPool, bootstrap: str) -> None:
    with consumers.acquire(options(bootstrap)) as first:
        assert first.topics() is not None
    with consumers.acquire(options(bootstrap)) as second:
        assert second is first
    with consumers.acquire(options(bootstrap, **{"client.id": "other"})) as other:
        assert other is not first


def test_what_went_wrong_is_closed(consumers: ConsumerPool, bootstrap: str) -> None:
    with pytest.raises(ZeroDivisionError), consumers.acquire(options(bootstrap)) as first:
        raise ZeroDivisionError
    with pytest.raises(IllegalStateError, match="closed"):
        first.topics()
    with consumers.acquire(options(bootstrap)) as second:
        assert second is not first


def test_two_tasks_at_once_have_two_and_one_is_kept(
    consumers: ConsumerPool, bootstrap: str
) -> None:
    with (
        consumers.acquire(options(bootstrap)) as outer,
        consumers.acquire(options(bootstrap)) as inner,
    ):
        assert inner is not outer
    with pytest.raises(IllegalStateError, match="closed"):
        inner.topics()
    with consumers.acquire(options(bootstrap)) as third:
        assert third is outer


def test_few_are_kept(consumers: ConsumerPool, bootstrap: str) -> None:
    made = []
    for number in range(IDLE_MAX + 1):
        with consumers.acquire(options(bootstrap, **{"client.id": str(number)})) as consumer:
            made.append(consumer)
    with ExitStack() as tasks:
        oldest = tasks.enter_context(consumers.acquire(options(bootstrap, **{"client.id": "0"})))
        newest = tasks.enter_context(
            consumers.acquire(options(bootstrap, **{"client.id": str(IDLE_MAX)}))
        )
        assert oldest is not made[0]
        assert newest is made[-1]
