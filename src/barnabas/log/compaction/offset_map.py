"""The newest offset of each key in the dirty part of a log, in bounded memory.

24 bytes for a key of any length: its MD5 and the offset. The map is filled up to a share of its
slots (the load factor), so that lookups stay short; the rest is left to the next run. Two keys with
the same digest would be taken for one; with 128 bits that does not happen by chance.
"""

from __future__ import annotations

from mmap import mmap

from barnabas.kernels import SLOT_SIZE, Buffer, find_offset, map_batches, map_records


class OffsetMap:
    """Keys and their newest offsets."""

    def __init__(self, memory_bytes: int, load_factor: float, keys_max: int) -> None:
        """Allocate at most this much memory, and no more than `keys_max` keys need."""
        slot_count = memory_bytes // SLOT_SIZE
        # One slot stays free, so that a search for an unknown key ends.
        self.capacity = max(min(int(slot_count * load_factor), slot_count - 1), 0)
        if keys_max < self.capacity:
            self.capacity = keys_max
            wanted = max(int(keys_max / max(load_factor, 0.01)), keys_max) + 2
            slot_count = min(wanted, slot_count)
        # The system zeroes what is touched, when it is: a large map costs nothing here and now.
        self._memory = mmap(-1, max(slot_count * SLOT_SIZE, 1))
        self.slots = memoryview(self._memory)[: slot_count * SLOT_SIZE]
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def release(self) -> int:
        """Free the memory, which takes time when it is large; the map is unusable afterwards."""
        self.slots.release()
        self._memory.close()
        return 0

    def get(self, key: Buffer) -> int | None:
        """Return the newest offset of a key, if it is known."""
        offset = find_offset(self.slots, key)
        return None if offset < 0 else offset

    def put_batches(
        self, buffer: Buffer, position: int, end: int, start_offset: int
    ) -> tuple[int, int]:
        """Enter plain batches; return where they ended, and the offset that did not fit or -1."""
        room = self.capacity - self.count
        position, added, full_at = map_batches(
            self.slots, room, buffer, position, end, start_offset
        )
        self.count += added
        return position, full_at

    def put_records(self, records: Buffer, count: int, base_offset: int, start_offset: int) -> int:
        """Enter uncompressed records; return the offset that did not fit, or -1."""
        room = self.capacity - self.count
        added, full_at = map_records(
            self.slots, room, records, 0, len(records), count, base_offset, start_offset
        )
        self.count += added
        return full_at
