"""Records packed piece by piece: nothing is held but what is packed already."""

from __future__ import annotations

import zlib
from typing import Any

import cramjam

from barnabas.kernels import Buffer
from barnabas.records import lz4_frame
from barnabas.records.compression import (
    XERIAL_HEADER,
    Codec,
    gzip_packer,
    lz4_level,
    snappy_framed,
    zstd_level,
)


class Packing:
    """One compressed stream while it grows."""

    def __init__(self, codec: Codec | int, level: int | None = None) -> None:
        self._codec = codec = Codec.of(codec)
        self._out = bytearray()
        self._packer: Any = None
        if codec is Codec.GZIP:
            self._packer = gzip_packer(level)
        elif codec is Codec.ZSTD:
            self._packer = cramjam.zstd.Compressor(zstd_level(level))
        elif codec is Codec.LZ4:
            self._packer = lz4_frame.packer(lz4_level(level))
            if self._packer is None:
                self._out += lz4_frame.HEADER
        elif codec is Codec.SNAPPY:
            self._out += XERIAL_HEADER

    @property
    def size(self) -> int:
        """How many bytes are packed; the packer may still keep some."""
        return len(self._out)

    def add(self, data: Buffer) -> None:
        """Pack some more."""
        if self._codec is Codec.NONE:
            self._out += data
        elif self._codec is Codec.GZIP:
            self._out += self._packer.compress(data)
        elif self._packer is not None:
            self._packer.compress(bytes(data))
            self._out += bytes(self._packer.flush())
        elif self._codec is Codec.LZ4:
            lz4_frame.add_blocks(self._out, memoryview(data))
        else:
            snappy_framed(self._out, memoryview(data))

    def finish(self) -> bytearray:
        """Return all that was packed."""
        if self._codec is Codec.GZIP:
            self._out += self._packer.flush(zlib.Z_FINISH)
        elif self._packer is not None:
            self._out += bytes(self._packer.finish())
        elif self._codec is Codec.LZ4:
            self._out += lz4_frame.END_MARK
        return self._out
