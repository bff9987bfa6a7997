"""Lines come as soon as they are there, from pipes and files alike."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from barnabas.cli.lines import read_lines


def lines_of(descriptor: int) -> list[bytes]:
    async def collect() -> list[bytes]:
        return [line async for lines in read_lines(descriptor) for line in lines]

    return asyncio.run(collect())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"\n", [b""]),
        (b"x" * 3_000_000 + b"\ny\n", [b"x" * 3_000_000, b"y"]),
    ],
)
def test_a_file_is_cut_into_lines(tmp_path: Path, data: bytes, expected: list[bytes]) -> None:
    path = tmp_path / "lines"
    path.write_bytes(data)
    with path.open("rb") as file:
        assert lines_of(file.fileno()) == expected


def test_an_empty_device_has_no_lines() -> None:
    with open(os.devnull, "rb") as device:
        assert lines_of(device.fileno()) == []


def test_a_pipe_gives_lines_before_it_is_closed() -> None:
    async def conversation() -> list[list[bytes]]:
        reader, writer = os.pipe()
        steps = []
        os.write(writer, b"one\ntw")
        async for lines in read_lines(reader):
            steps.append(lines)
            if len(steps) == 1:
                os.write(writer, b"o\nthree")
            elif len(steps) == 2:
                os.close(writer)
        os.close(reader)
        return steps

    assert asyncio.run(conversation()) == [[b"one"], [b"two"], [b"three"]]
