"""The memory that a producer's batches share."""

from __future__ import annotations

import threading
from collections.abc import Callable

from barnabas.kernels import HEADER_SIZE
from barnabas.model.errors import InvalidValueError


class BufferPool:
    """At most `memory` bytes of buffers; those of the usual size are used again."""

    def __init__(self, memory: int, batch_size: int, batch_size_max: int = 0) -> None:
        """Prepare the pool; a batch of `batch_size` bytes may grow up to `batch_size_max`."""
        if memory < batch_size:
            raise InvalidValueError(
                f"buffer.memory={memory} must have room for one batch (batch.size={batch_size})"
            )
        self.memory = memory
        self.batch_size = max(batch_size, HEADER_SIZE)
        self.batch_size_max = max(self.batch_size, batch_size_max)
        self.in_use = 0
        self.waiting = False
        """Whether callers queue for memory: then only the first in the queue gets any."""
        self.on_room: Callable[[], object] | None = None
        """Called when the memory of a batch was released."""
        self.lock = threading.RLock()
        """Held wherever batches change, here and in the accumulator."""
        self._free: list[bytearray] = []

    def reserve(self, size: int, in_turn: bool) -> bool:
        """Reserve memory for the caller; return whether there was enough."""
        if self.waiting and not in_turn:
            return False
        if self.in_use + size > self.memory and self.in_use > 0:
            return False  # a single batch may be larger than all memory: it would never fit
        self.in_use += size
        while self._free and self.in_use + len(self._free) * self.batch_size > self.memory:
            self._free.pop()
        return True

    def take(self, size: int) -> bytearray:
        """Return a buffer of a size that was reserved."""
        return self._free.pop() if size == self.batch_size and self._free else bytearray(size)

    def grow(self, buffer: bytearray, size: int) -> int:
        """Make room for `size` bytes in a buffer; return how much it grew, 0 if it may not."""
        capacity = min(max(2 * len(buffer), size), self.batch_size_max)
        more = capacity - len(buffer)
        if self.waiting or size > capacity or self.in_use + more > self.memory:
            return 0
        try:
            buffer.extend(bytes(more))
        except BufferError:  # a view of its last batch is still alive
            return 0
        self.in_use += more
        return more

    def give_back(self, buffer: bytearray | None, charge: int) -> None:
        """Release a buffer that was charged with this many bytes."""
        self.in_use -= charge
        if charge == self.batch_size and buffer is not None:
            self._free.append(buffer)
