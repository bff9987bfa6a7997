"""Where the time of a request went that was not answered at once."""

from __future__ import annotations


class Phases:
    """The seconds that a request has spent in each phase; time is passed in.

    It runs (`local_s`) from its arrival on. After `pause` it waits for something else (`remote_s`)
    until `resume`, after `queue` for its handler (`queue_s`), after `hand_over` for its client to
    read the response (`send_s`).
    """

    __slots__ = ("_since", "_state", "local_s", "queue_s", "remote_s", "send_s")

    def __init__(self, received: float, queue_s: float = 0.0) -> None:
        """Begin with a request that arrived, and had waited for its handler before."""
        self.queue_s = queue_s
        self.local_s = 0.0
        self.remote_s = 0.0
        self.send_s = 0.0
        self._state = "local_s"
        self._since = received

    def resume(self, now: float) -> None:
        """Run."""
        self._enter("local_s", now)

    def pause(self, now: float) -> None:
        """Wait for other brokers, for records, for a disk."""
        self._enter("remote_s", now)

    def queue(self, now: float) -> None:
        """Wait for the handler to be called."""
        self._enter("queue_s", now)

    def hand_over(self, now: float) -> None:
        """Wait for the client to read the response."""
        self._enter("send_s", now)

    def end(self, now: float) -> None:
        """Add the time up to the end of the request."""
        self._enter(self._state, now)

    def _enter(self, state: str, now: float) -> None:
        spent = getattr(self, self._state) + now - self._since
        setattr(self, self._state, spent)
        self._state = state
        self._since = now
