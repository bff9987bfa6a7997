"""A consumer serves one task after another, unless one of them went wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")

from barnabas.errors import IllegalStateError
from barnabas.spark.consumers import IDLE_MAX, Consumers


@pytest.fixture
def consumers() -> Iterator[Consumers]:
    kept = Consumers()
    yield kept
    kept.close()


def options(bootstrap: str, **more: str) -> dict[str, str]:
    return {"bootstrap.servers": bootstrap, **more}


def test_a_consumer_is_given_out_again(consumers: Consumers, bootstrap: str) -> None:
    with consumers.lend(options(bootstrap)) as first:
        assert first.topics() is not None
    with consumers.lend(options(bootstrap)) as second:
        assert second is first
    with consumers.lend(options(bootstrap, **{"client.id": "other"})) as other:
        assert other is not first


def test_what_went_wrong_is_closed(consumers: Consumers, bootstrap: str) -> None:
    with pytest.raises(ZeroDivisionError), consumers.lend(options(bootstrap)) as first:
        raise ZeroDivisionError
    with pytest.raises(IllegalStateError, match="closed"):
        first.topics()
    with consumers.lend(options(bootstrap)) as second:
        assert second is not first


def test_two_tasks_at_once_have_two_and_one_is_kept(consumers: Consumers, bootstrap: str) -> None:
    with consumers.lend(options(bootstrap)) as outer, consumers.lend(options(bootstrap)) as inner:
        assert inner is not outer
    with pytest.raises(IllegalStateError, match="closed"):
        inner.topics()
    with consumers.lend(options(bootstrap)) as third:
        assert third is outer


def test_few_are_kept(consumers: Consumers, bootstrap: str) -> None:
    made = []
    for number in range(IDLE_MAX + 1):
        with consumers.lend(options(bootstrap, **{"client.id": str(number)})) as consumer:
            made.append(consumer)
    with ExitStack() as tasks:
        oldest = tasks.enter_context(consumers.lend(options(bootstrap, **{"client.id": "0"})))
        newest = tasks.enter_context(
            consumers.lend(options(bootstrap, **{"client.id": str(IDLE_MAX)}))
        )
        assert oldest is not made[0]
        assert newest is made[-1]
