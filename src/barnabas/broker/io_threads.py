"""The threads of `num.io.threads`, for work that would stall the event loop."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from threading import Lock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class IoThreads(Executor):
    """An executor whose number of threads can be changed while it works."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = _pool(count)
        self._lock = Lock()  # threads submit work too

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue work."""
        with self._lock:
            return self._pool.submit(work, *args, **kwargs)

    def resize(self, count: int) -> None:
        """Use another number of threads; the old ones finish their work and end."""
        if count != self.count:
            with self._lock:
                former, self._pool, self.count = self._pool, _pool(count), count
            former.shutdown(wait=False)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more work."""
        with self._lock:
            self._pool.shutdown(wait, cancel_futures=cancel_futures)


def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "barnabas-io")
