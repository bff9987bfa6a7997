"""Brokers that give the same bad answer for ever: a consumer asks again, but not in a storm."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.unit.consumer.scripted import P, Scripted, simulate

from barnabas.aio.consumer import AIOKafkaConsumer
from barnabas.errors import KafkaError
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.fetch import FetchResponse

SECONDS = 4
REQUESTS_MAX = 30 * SECONDS
"""Pauses between attempts grow from 100 ms to 1 s; there are several kinds of requests."""

# An offset that is out of range is asked for anew, which no broker refuses at once.
CODES = [code for code in ErrorCode if code not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE)]

Trouble = Callable[[Scripted], None]


def requests_of(trouble: Trouble, *, polls: bool) -> int:
    """Return how many requests a consumer sends in some seconds after the trouble began."""

    async def main() -> int:
        async with Scripted() as brokers:
            brokers.append(3)
            reader = AIOKafkaConsumer(
                bootstrap_servers=brokers.bootstrap, auto_offset_reset="earliest"
            )
            reader.assign([P])
            async with reader:
                assert (await reader.getone()).value == b"0"
                trouble(brokers)
                for broker in brokers.brokers:
                    broker.requests.clear()
                loop = asyncio.get_running_loop()
                end_s = loop.time() + SECONDS
                count = 0
                while loop.time() < end_s and count < REQUESTS_MAX:
                    try:
                        if polls:
                            await reader.getmany(timeout_ms=100)
                    except KafkaError:
                        pass
                    await asyncio.sleep(0.1)
                    count = sum(len(broker.requests) for broker in brokers.brokers)
                return count

    return simulate(main())


def refuse_partition(code: ErrorCode, brokers: Scripted) -> None:
    brokers.append(1)
    brokers.answer = lambda *_: brokers.refusal(code)


def refuse_fetch(code: ErrorCode, brokers: Scripted) -> None:
    brokers.append(1)
    brokers.answer = lambda *_: FetchResponse(error_code=code)


@pytest.mark.parametrize("polls", [True, False], ids=["polling", "away"])
@pytest.mark.parametrize("refuse", [refuse_partition, refuse_fetch])
def test_fetches_that_are_refused(refuse: Any, polls: bool) -> None:
    """Whatever the code, and whether or not the user polls and hears of it."""
    counts = {code: requests_of(partial(refuse, code), polls=polls) for code in CODES}
    assert {code: count for code, count in counts.items() if count >= REQUESTS_MAX} == {}
