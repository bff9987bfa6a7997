"""Faults that happen to a cluster while a test runs, as its marks describe them.

A fault begins with the test, or when clients have sent `after_records` records, and lasts `for_s`
seconds, or until the test ends or undoes it. One that waits for records acts when the request with
the last of them has reached its broker, and before any response leaves: whether the request had an
effect is then what the client has to find out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from barnabas.model.errors import InvalidValueError
from barnabas.testing.cluster import Cluster

_DEADLINE_S = 60.0

Act = Callable[[Cluster], None]


@dataclass(frozen=True)
class Fault:
    """Something that happens to a cluster, and how it ends."""

    name: str
    begin: Act
    end: Act
    brokers: tuple[int, ...] = ()
    after_records: int = 0
    for_s: float | None = None

    @property
    def brokers_min(self) -> int:
        """The smallest number of brokers of a cluster that it can happen to."""
        return max(self.brokers, default=0) + 1


def kill(broker: int, **when: Any) -> Fault:
    """Return the fault of a broker that is killed, and started again at its end."""
    return _fault(
        f"kill({broker})",
        lambda cluster: cluster.kill(broker),
        lambda cluster: _start_again(cluster, broker),
        (broker,),
        **when,
    )


def stop(broker: int, **when: Any) -> Fault:
    """Return the fault of a broker that shuts down in order, and is started again at its end."""
    return _fault(
        f"stop({broker})",
        lambda cluster: cluster.stop(broker),
        lambda cluster: _start_again(cluster, broker),
        (broker,),
        **when,
    )


def isolate(broker: int, *, clients_only: bool = False, **when: Any) -> Fault:
    """Return the fault of a broker that nobody reaches."""
    return _fault(
        f"isolate({broker})",
        lambda cluster: cluster.isolate(broker, clients_only=clients_only),
        lambda cluster: cluster.heal(broker),
        (broker,),
        **when,
    )


def partition(one: int, other: int, *, one_way: bool = False, **when: Any) -> Fault:
    """Return the fault of two brokers that do not reach each other."""
    return _fault(
        f"partition({one}, {other})",
        lambda cluster: cluster.partition(one, other, one_way=one_way),
        lambda cluster: cluster.heal(one),
        (one, other),
        **when,
    )


def slow(latency_ms: float, broker: int | None = None, **when: Any) -> Fault:
    """Return the fault of a slow network, to one broker or to all."""
    return _fault(
        f"slow({latency_ms})",
        lambda cluster: cluster.slow(latency_ms, broker),
        lambda cluster: cluster.slow(0, broker),
        () if broker is None else (broker,),
        **when,
    )


FAULTS: Mapping[str, Callable[..., Fault]] = {
    "kill": kill,
    "stop": stop,
    "isolate": isolate,
    "partition": partition,
    "slow": slow,
}


def _fault(
    name: str,
    begin: Act,
    end: Act,
    brokers: tuple[int, ...],
    *,
    after_records: int = 0,
    for_s: float | None = None,
) -> Fault:
    if after_records < 0:
        raise InvalidValueError(f"{name}: after_records={after_records}: must be at least 0")
    if for_s is not None and for_s < 0:
        raise InvalidValueError(f"{name}: for_s={for_s}: must be at least 0")
    if any(broker < 0 for broker in brokers):
        raise InvalidValueError(f"{name}: brokers are counted from 0")
    return Fault(name, begin, end, brokers, after_records, for_s)


def _start_again(cluster: Cluster, broker: int) -> None:
    if broker not in cluster.running:  # the test may have started it
        cluster.start(broker)


class FaultPlan:
    """The faults of one test, on a wired cluster that runs."""

    def __init__(self, cluster: Cluster, faults: Iterable[Fault]) -> None:
        """Have those faults begin that wait for nothing, and the others wait."""
        self._cluster = cluster
        self._lock = threading.Lock()
        self._finished = False
        self._timers: list[threading.Timer] = []
        self._ends: list[Future[None]] = []
        self._waiting: list[tuple[Fault, Future[None]]] = []
        for fault in faults:
            if fault.after_records:
                begin = self._begin_of(fault)
                self._waiting.append((fault, cluster.after_records(fault.after_records, begin)))
            else:
                self._begin_of(fault)()

    def _begin_of(self, fault: Fault) -> Callable[[], None]:
        def begin() -> None:
            with self._lock:
                if self._finished:
                    return
                fault.begin(self._cluster)
                if fault.for_s is not None:
                    ended: Future[None] = Future()
                    timer = threading.Timer(fault.for_s, self._end, (fault, ended))
                    timer.daemon = True
                    self._ends.append(ended)
                    self._timers.append(timer)
                    timer.start()

        return begin

    def _end(self, fault: Fault, ended: Future[None]) -> None:
        with self._lock:
            try:
                if not self._finished:
                    fault.end(self._cluster)
            except Exception as failure:  # noqa: BLE001  raised by finish
                ended.set_exception(failure)
            else:
                ended.set_result(None)

    def finish(self) -> list[str]:
        """Cancel what has not happened yet, and return why faults did not happen, a line each.

        Raises what a fault has raised.
        """
        with self._lock:  # what is happening now is awaited
            self._finished = True
        for timer in self._timers:
            timer.cancel()
            timer.join(_DEADLINE_S)
        for future in [*self._ends, *(future for _, future in self._waiting)]:
            if future.done():
                future.result()
        sent = self._cluster.records_sent
        return [
            f"{fault.name} did not happen: clients sent {sent} records, it waits for"
            f" {fault.after_records}"
            for fault, future in self._waiting
            if not future.done()
        ]
