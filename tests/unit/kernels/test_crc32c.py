"""CRC-32C against published check values, and across the sizes where the algorithm changes gear."""

from __future__ import annotations

from types import ModuleType as Kernels

import pytest


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # RFC 3720, B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
    ],
)
def test_known_values(kernels: Kernels, data: bytes, crc: int) -> None:
    assert kernels.crc32c(data) == crc


def test_a_crc_is_continued_over_pieces(kernels: Kernels) -> None:
    assert kernels.crc32c(b"6789", kernels.crc32c(b"12345")) == 0xE3069283


def test_any_buffer_is_accepted(kernels: Kernels) -> None:
    for data in (bytearray(b"123456789"), memoryview(b"0123456789")[1:]):
        assert kernels.crc32c(data) == 0xE3069283


def test_what_is_no_buffer_is_refused(kernels: Kernels) -> None:
    with pytest.raises(TypeError):
        kernels.crc32c("123456789")  # type: ignore[arg-type]


def test_every_size_around_the_strides_agrees(twins: tuple[Kernels, Kernels]) -> None:
    """Three streams of 4096, then of 256 bytes, then words, then bytes; also unaligned."""
    from barnabas.kernels.cython.crc32c import crc32c_portable

    reference, compiled = twins
    data = memoryview(bytes((7 * i + i // 251) & 0xFF for i in range(40_000)))
    sizes = [*range(40), 767, 768, 769, 775, 1536, 12287, 12288, 12289, 13056, 32768, 39_990]
    for size in sizes:
        for start in (0, 1, 3):
            piece = data[start : start + size]
            expected = reference.crc32c(piece, size)
            assert compiled.crc32c(piece, size) == expected
            assert crc32c_portable(piece, size) == expected
