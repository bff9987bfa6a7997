"""MessagePack and CBOR as documents, within limits on depth and on the number of items.

Lengths in the bytes are never believed: what they announce must be there before it is read.
"""

from __future__ import annotations

import struct
from typing import Any, Final

DEPTH_MAX: Final = 50
ITEMS_MAX: Final = 100_000


class NotBinaryJsonError(ValueError):
    """Bytes that are not one whole document."""


class _Reader:
    """Bytes with a position, and what may still be read of items."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._left = ITEMS_MAX

    def document(self) -> Any:
        found = self.item(0)
        if self._at != len(self._data):
            raise NotBinaryJsonError(f"{len(self._data) - self._at} bytes are left over")
        return found

    def item(self, depth: int) -> Any:
        raise NotImplementedError

    def enter(self, depth: int) -> None:
        self._left -= 1
        if self._left < 0:
            raise NotBinaryJsonError(f"more than {ITEMS_MAX} items")
        if depth > DEPTH_MAX:
            raise NotBinaryJsonError(f"nested deeper than {DEPTH_MAX} levels")

    def byte(self) -> int:
        return self.take(1)[0]

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise NotBinaryJsonError("truncated")
        found = self._data[self._at : end]
        self._at = end
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def text(self, size: int) -> str:
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as failure:
            raise NotBinaryJsonError(str(failure)) from None

    def array(self, count: int, depth: int) -> list[Any]:
        if count > len(self._data) - self._at:  # an item has a byte at least
            raise NotBinaryJsonError("truncated")
        return [self.item(depth + 1) for _ in range(count)]

    def map(self, count: int, depth: int) -> dict[str, Any]:
        if 2 * count > len(self._data) - self._at:
            raise NotBinaryJsonError("truncated")
        return dict(self.member(depth) for _ in range(count))

    def member(self, depth: int) -> tuple[str, Any]:
        name = self.item(depth + 1)
        return name if isinstance(name, str) else str(name)[:1000], self.item(depth + 1)


class _MessagePack(_Reader):
    _FLOATS: Final = {0xCA: struct.Struct(">f"), 0xCB: struct.Struct(">d")}
    _CONSTANTS: Final = {0xC0: None, 0xC2: False, 0xC3: True}

    def item(self, depth: int) -> Any:
        self.enter(depth)
        head = self.byte()
        if head < 0x80:
            return head
        if head >= 0xE0:
            return head - 0x100
        if head < 0x90:
            return self.map(head & 0x0F, depth)
        if head < 0xA0:
            return self.array(head & 0x0F, depth)
        if head < 0xC0:
            return self.text(head & 0x1F)
        if head in self._CONSTANTS:
            return self._CONSTANTS[head]
        if head in self._FLOATS:
            layout = self._FLOATS[head]
            return layout.unpack(self.take(layout.size))[0]
        if 0xC4 <= head <= 0xC6:
            return self.take(self.number(1 << head - 0xC4))
        if 0xC7 <= head <= 0xC9:
            return self._extension(self.number(1 << head - 0xC7))
        if 0xCC <= head <= 0xCF:
            return self.number(1 << head - 0xCC)
        if 0xD0 <= head <= 0xD3:
            size = 1 << head - 0xD0
            return int.from_bytes(self.take(size), "big", signed=True)
        if 0xD4 <= head <= 0xD8:
            return self._extension(1 << head - 0xD4)
        if 0xD9 <= head <= 0xDB:
            return self.text(self.number(1 << head - 0xD9))
        if head in (0xDC, 0xDD):
            return self.array(self.number(2 << head - 0xDC), depth)
        if head in (0xDE, 0xDF):
            return self.map(self.number(2 << head - 0xDE), depth)
        raise NotBinaryJsonError(f"first byte {head:#04x}")

    def _extension(self, size: int) -> dict[str, Any]:
        return {"extension": self.byte(), "data": self.take(size)}


class _Cbor(_Reader):
    _FLOATS: Final = {25: struct.Struct(">e"), 26: struct.Struct(">f"), 27: struct.Struct(">d")}
    _CONSTANTS: Final = {20: False, 21: True, 22: None, 23: None}

    def item(self, depth: int) -> Any:
        self.enter(depth)
        head = self.byte()
        kind, short = head >> 5, head & 0x1F
        if kind == 7:
            return self._simple(short)
        if short == 31:
            return self._indefinite(kind, depth)
        if short > 27:
            raise NotBinaryJsonError(f"first byte {head:#04x}")
        argument = short if short < 24 else self.number(1 << short - 24)
        match kind:
            case 0:
                return argument
            case 1:
                return -1 - argument
            case 2:
                return self.take(argument)
            case 3:
                return self.text(argument)
            case 4:
                return self.array(argument, depth)
            case 5:
                return self.map(argument, depth)
            case _:
                return {"tag": argument, "data": self.item(depth + 1)}

    def _simple(self, short: int) -> Any:
        if short in self._CONSTANTS:
            return self._CONSTANTS[short]
        layout = self._FLOATS.get(short)
        if layout is None:
            raise NotBinaryJsonError(f"simple value {short}")
        return layout.unpack(self.take(layout.size))[0]

    def _indefinite(self, kind: int, depth: int) -> Any:
        if kind not in (2, 3, 4, 5):
            raise NotBinaryJsonError("unexpected indefinite length")
        found: list[Any] = []
        while not self._ended():
            found.append(self.member(depth) if kind == 5 else self.item(depth + 1))
        if kind == 4:
            return found
        if kind == 5:
            return dict(found)
        wanted = bytes if kind == 2 else str
        if not all(isinstance(each, wanted) for each in found):
            raise NotBinaryJsonError("a string in parts of another type")
        return wanted().join(found)

    def _ended(self) -> bool:
        if self.take(1) == b"\xff":
            return True
        self._at -= 1
        return False


def read_message_pack(data: bytes) -> Any:
    """Return a document of MessagePack; raise NotBinaryJsonError."""
    return _MessagePack(data).document()


def read_cbor(data: bytes) -> Any:
    """Return a document of CBOR; raise NotBinaryJsonError."""
    return _Cbor(data).document()
