"""The threads of `num.io.threads`: work that would stall the loop, on as many as are wanted now."""

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
        self._lock = Lock()  # work comes from threads, too

    def submit(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Have work done, in the order in which it comes."""
        with self._lock:
            return self._pool.submit(work, *args, **kwargs)

    def resize(self, count: int) -> None:
        """Use so many threads for what comes; the former ones end what they have, and then end."""
        if count != self.count:
            with self._lock:
                former, self._pool, self.count = self._pool, _pool(count), count
            former.shutdown(wait=False)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work."""
        with self._lock:
            self._pool.shutdown(wait, cancel_futures=cancel_futures)


def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "barnabas-io")
