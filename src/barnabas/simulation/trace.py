"""The events of a simulation, as a running hash: two runs of one seed must end with the same."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable

TAIL_LENGTH = 200


class Trace:
    """Counts and hashes events, and keeps the last ones for people to read.

    Events must not depend on memory addresses, on the order of sets or on this process.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._hash = hashlib.blake2b(digest_size=16)
        self.count = 0
        self.tail: deque[str] = deque(maxlen=TAIL_LENGTH)

    def step(self, owner: str, callback: object) -> None:
        """Record that the loop runs a callback (hashed, not kept: there are too many to read)."""
        name = getattr(callback, "__qualname__", None) or type(callback).__qualname__
        self._add(f"{self._clock()!r} {owner} {name}")

    def note(self, *words: object) -> None:
        """Record an event worth reading."""
        line = f"{self._clock():.6f} " + " ".join(map(str, words))
        self.tail.append(line)
        self._add(line)

    def digest(self) -> str:
        """Return the hash of all events so far, in hex."""
        return self._hash.hexdigest()

    def _add(self, line: str) -> None:
        self.count += 1
        self._hash.update(line.encode())
        self._hash.update(b"\n")
