"""Scrapes: one at a time, shared within a second, and bounded in number."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Iterator

import pytest

from barnabas.broker.monitoring.http_request import BadRequest
from barnabas.broker.monitoring.scrapes import FRESH_S, WAITING_MAX, BrokenOff, Scrape, Scrapes


class Writer:
    """Writes scrapes, and counts how many are written at a time."""

    def __init__(self) -> None:
        self.begun = 0
        self.most = 0
        self.now_s = 100.0
        self._open = 0

    async def write(self) -> Iterator[bytes]:
        self.begun += 1
        return self._chunks(self.begun)

    def _chunks(self, number: int) -> Iterator[bytes]:
        self._open += 1
        self.most = max(self.most, self._open)
        yield b"scrape %d:" % number
        yield b""
        yield b" all of it"
        self._open -= 1


async def read(scrape: Scrape) -> bytes:
    return b"".join([chunk async for chunk in scrape.chunks()])


def test_the_same_bytes_for_all_within_a_second() -> None:
    async def story() -> None:
        writer = Writer()
        scrapes = Scrapes(lambda: writer.now_s)
        first = scrapes.scrape("a", writer.write, packed=False)
        meanwhile = scrapes.scrape("a", writer.write, packed=False)
        assert await asyncio.gather(read(first), read(meanwhile)) == [b"scrape 1: all of it"] * 2
        writer.now_s += FRESH_S * 0.9
        assert await read(scrapes.scrape("a", writer.write, packed=False)) == (
            b"scrape 1: all of it"
        )
        writer.now_s += FRESH_S
        assert await read(scrapes.scrape("a", writer.write, packed=False)) == (
            b"scrape 2: all of it"
        )
        await scrapes.stop()

    asyncio.run(story())


def test_different_scrapes_are_written_one_after_the_other() -> None:
    async def story() -> None:
        writer = Writer()
        scrapes = Scrapes(lambda: writer.now_s)
        found = await asyncio.gather(
            *(read(scrapes.scrape(key, writer.write, packed=False)) for key in "abc")
        )
        assert sorted(found) == [b"scrape %d: all of it" % number for number in (1, 2, 3)]
        assert writer.most == 1
        await scrapes.stop()

    asyncio.run(story())


def test_packed_bytes_are_a_scrape_of_their_own() -> None:
    async def story() -> None:
        writer = Writer()
        scrapes = Scrapes(lambda: writer.now_s)
        plain = scrapes.scrape("a", writer.write, packed=False)
        packed = scrapes.scrape("a", writer.write, packed=True)
        assert await read(plain) == b"scrape 1: all of it"
        assert gzip.decompress(await read(packed)) == b"scrape 2: all of it"
        await scrapes.stop()

    asyncio.run(story())


def test_too_many_that_wait_are_rejected() -> None:
    async def story() -> None:
        writer = Writer()
        scrapes = Scrapes(lambda: writer.now_s)
        for key in range(WAITING_MAX):
            scrapes.scrape(key, writer.write, packed=False)
        with pytest.raises(BadRequest, match="16 other scrapes wait already"):
            scrapes.scrape("one more", writer.write, packed=False)
        await scrapes.stop()

    asyncio.run(story())


def test_a_scrape_that_fails_is_not_shown_as_whole(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> Iterator[bytes]:
        def chunks() -> Iterator[bytes]:
            yield b"half"
            raise ZeroDivisionError

        return chunks()

    async def story() -> None:
        writer = Writer()
        scrapes = Scrapes(lambda: writer.now_s)
        with pytest.raises(BrokenOff):
            await read(scrapes.scrape("a", broken, packed=False))
        assert await read(scrapes.scrape("a", writer.write, packed=False)) == (
            b"scrape 1: all of it"
        )
        await scrapes.stop()

    with caplog.at_level(logging.ERROR, "barnabas.metrics"):
        asyncio.run(story())
    assert [each.getMessage() for each in caplog.records] == ["metrics: the scrape was broken off"]


def test_a_stop_ends_those_in_progress() -> None:
    async def endless() -> Iterator[bytes]:
        await asyncio.Event().wait()
        return iter(())

    async def story() -> None:
        scrapes = Scrapes(lambda: 0.0)
        reading = asyncio.create_task(read(scrapes.scrape("a", endless, packed=False)))
        await asyncio.sleep(0)
        await scrapes.stop()
        with pytest.raises(BrokenOff):
            await reading

    asyncio.run(story())
