"""Where each leader epoch of one partition began: (epoch, start offset), both ascending.

The list lives in memory and goes to `leader-epoch-checkpoint` before the recovery point passes what
it describes, so recovery, which reads the batches from there on, can restore what a crash lost.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from barnabas.log.checkpoints import decode_lines, encode_lines
from barnabas.model.errors import CorruptFileError
from barnabas.model.ids import NO_EPOCH, NO_OFFSET

EPOCH_FILE = "leader-epoch-checkpoint"


class LeaderEpochs:
    """The epochs of one partition log."""

    __slots__ = ("_epochs", "_starts", "changed", "latest")

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = NO_EPOCH
        self.changed = False

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._epochs, self._starts, strict=True)

    def __len__(self) -> int:
        return len(self._epochs)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Record that `epoch` writes from `start_offset` on; drops entries that contradict it."""
        if epoch < 0:
            return
        if self._epochs and epoch == self._epochs[-1] and start_offset >= self._starts[-1]:
            return
        keep = min(bisect_left(self._epochs, epoch), bisect_left(self._starts, start_offset))
        self._cut(keep)
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self.latest = epoch
        self.changed = True

    def end_offset_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return (epoch, end offset) of the greatest known epoch at or below the asked one.

        This is what a follower (or a consumer that checks for truncation) truncates by. The latest
        epoch ends at the log end; an epoch below the first known one ends where that starts. (-1,
        -1): unknown.
        """
        if epoch == NO_EPOCH or not self._epochs or epoch > self._epochs[-1]:
            return NO_EPOCH, NO_OFFSET
        if epoch == self._epochs[-1]:
            return epoch, log_end_offset
        slot = bisect_right(self._epochs, epoch) - 1
        if slot < 0:
            return epoch, self._starts[0]
        return self._epochs[slot], self._starts[slot + 1]

    def epoch_of(self, offset: int) -> int:
        """Return the epoch that wrote an offset, -1 when unknown."""
        slot = bisect_right(self._starts, offset) - 1
        return NO_EPOCH if slot < 0 else self._epochs[slot]

    def truncate_end(self, end_offset: int) -> None:
        """Drop the epochs that start at or after the new end."""
        keep = bisect_left(self._starts, end_offset)
        if keep < len(self._epochs):
            self._cut(keep)
            self.changed = True

    def truncate_start(self, start_offset: int) -> None:
        """Drop what is below a new log start; the epoch that covers it now starts there."""
        drop = bisect_right(self._starts, start_offset) - 1
        if drop >= 0 and self._starts[0] < start_offset:
            del self._epochs[:drop], self._starts[:drop]
            self._starts[0] = start_offset
            self.changed = True

    def clear(self) -> None:
        """Forget everything."""
        self.changed = self.changed or bool(self._epochs)
        self._cut(0)

    def _cut(self, keep: int) -> None:
        del self._epochs[keep:], self._starts[keep:]
        self.latest = self._epochs[-1] if self._epochs else NO_EPOCH

    def encode(self) -> bytes:
        """Return the content of the file."""
        return encode_lines(f"{epoch} {start}" for epoch, start in self)

    @classmethod
    def decode(cls, data: bytes, path: str) -> LeaderEpochs:
        """Read the content of a file; raise CorruptFileError if it is not valid."""
        epochs = cls()
        for fields in decode_lines(data, path):
            try:
                epoch, start = map(int, fields)
            except ValueError as failure:
                raise CorruptFileError(f"{path}: unreadable line {' '.join(fields)!r}") from failure
            epochs.assign(epoch, start)
        epochs.changed = False
        return epochs
