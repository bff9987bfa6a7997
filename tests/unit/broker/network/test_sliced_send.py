"""Answers with file ranges in slices, as fast as the transport takes them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.network.sliced_send import READ_BYTES, SlicedSend


class Range:
    """A part of a file that remembers whether it was released."""

    def __init__(self, path: Path, position: int, size: int, *, real: bool = True) -> None:
        self.position, self.size = position, size
        self._file = path.open("rb")
        self._real = real
        self.released = 0

    def fileno(self) -> int | None:
        return self._file.fileno() if self._real else None

    def read(self) -> bytes:
        return os.pread(self._file.fileno(), self.size, self.position)

    def release(self) -> None:
        self.released += 1
        self._file.close()


class Transport:
    """Takes what is written, and can be full or closed."""

    def __init__(self, room: int = 1 << 30) -> None:
        self.written = bytearray()
        self.room = room
        self.closing = False
        self.largest = 0

    def write(self, data: Any) -> None:
        self.written += data
        self.largest = max(self.largest, len(data))

    def is_full(self) -> bool:
        return len(self.written) >= self.room

    def is_closing(self) -> bool:
        return self.closing


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(os.urandom(300_000))
    return path


def sender(transport: Transport, ends: list[str]) -> SlicedSend:
    async def make() -> SlicedSend:
        return SlicedSend(
            transport, lambda: ends.append("sent"), lambda: ends.append("lost"), transport.is_full
        )

    return asyncio.run(make())


@pytest.mark.parametrize("real", [True, False])
def test_parts_are_sent_in_order_and_released(file: Path, real: bool) -> None:
    transport, ends = Transport(), list[str]()
    data = file.read_bytes()
    ranges = [Range(file, 10, 200_000, real=real), Range(file, 5, 3, real=real)]
    large = os.urandom(3 * READ_BYTES + 7)
    sending = sender(transport, ends)
    sending.send([b"head", ranges[0], large, ranges[1], b""])
    assert transport.written == b"head" + data[10:200_010] + large + data[5:8]
    assert transport.largest <= READ_BYTES
    assert ends == ["sent"]
    assert [each.released for each in ranges] == [1, 1]
    assert sending.stalled_since_ms is None


def test_a_full_transport_is_waited_for(file: Path) -> None:
    transport, ends = Transport(room=100_000), list[str]()
    sending = sender(transport, ends)
    part = Range(file, 0, 300_000)
    sending.send([part])
    assert len(transport.written) == 2 * READ_BYTES
    assert sending.stalled_since_ms is not None
    sending.resume()  # still full
    assert (len(transport.written), ends, part.released) == (2 * READ_BYTES, [], 0)
    transport.room = 1 << 30
    sending.resume()
    assert transport.written == file.read_bytes()
    assert (ends, part.released) == (["sent"], 1)


def test_what_was_not_sent_is_released(file: Path) -> None:
    transport, ends = Transport(room=1), list[str]()
    parts = [Range(file, 0, 300_000), Range(file, 0, 10)]
    sending = sender(transport, ends)
    sending.send(parts)
    sending.close()
    sending.resume()
    assert [each.released for each in parts] == [1, 1]
    assert ends == []
    assert sending.stalled_since_ms is None


def test_nothing_is_read_for_a_closed_transport(file: Path) -> None:
    transport, ends = Transport(), list[str]()
    transport.closing = True
    sending = sender(transport, ends)
    sending.send([Range(file, 0, 10)])
    assert (transport.written, ends) == (b"", [])
    sending.close()


def test_a_file_that_became_shorter_ends_the_connection(file: Path) -> None:
    transport, ends = Transport(), list[str]()
    sending = sender(transport, ends)
    os.truncate(file, 1000)
    sending.send([Range(file, 0, 2000)])
    assert ends == ["lost"]
    sending.close()
