"""Threads whose number changes while they work."""

from __future__ import annotations

import threading

import pytest

from barnabas.broker.loop import IoThreads


class Crowd:
    """Work that waits until it is let go, and counts itself."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._open = False
        self.present = 0

    def work(self) -> None:
        with self._changed:
            self.present += 1
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._open, 60)
            self.present -= 1

    def expect(self, count: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.present == count, 60), self.present

    def let_go(self) -> None:
        with self._changed:
            self._open = True
            self._changed.notify_all()


def test_so_many_work_at_once_as_are_wanted_now() -> None:
    threads = IoThreads(1)
    old, new = Crowd(), Crowd()
    waiting = [threads.submit(old.work) for _ in range(3)]
    old.expect(1)
    threads.resize(2)
    later = [threads.submit(new.work) for _ in range(4)]
    new.expect(2)
    assert old.present == 1, "the former one has not been hurried"
    old.let_go()
    for each in waiting:
        each.result(60)
    assert new.present == 2
    new.let_go()
    for each in later:
        each.result(60)
    assert list(threads.map(abs, (-1, -2))) == [1, 2]
    threads.shutdown()


def test_former_threads_end() -> None:
    others = set(threading.enumerate())
    threads = IoThreads(3)
    crowd = Crowd()
    working = [threads.submit(crowd.work) for _ in range(3)]
    crowd.expect(3)
    former = set(threading.enumerate()) - others
    assert len(former) == 3
    threads.resize(1)
    crowd.let_go()
    for each in working:
        each.result(60)
    for thread in former:
        thread.join(60)
        assert not thread.is_alive()
    assert threads.submit(int, "7").result(60) == 7
    threads.shutdown()
    with pytest.raises(RuntimeError):
        threads.submit(int)
