"""Work that can wait runs at a lower priority than the loop, and on one thread."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from barnabas.broker.background_threads import NICENESS, background_thread


def priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priority of their own")
def test_a_background_thread_gives_way_and_leaves_other_threads_alone() -> None:
    before = priority()
    with background_thread("background") as executor:
        inside = executor.submit(priority).result(30)
    assert inside == min(before + NICENESS, 19)
    assert priority() == before


def test_all_work_of_an_executor_is_done_by_one_thread() -> None:
    with background_thread("background") as executor:
        waiting = [executor.submit(threading.get_ident) for _ in range(5)]
        assert len({each.result(30) for each in waiting} | {threading.get_ident()}) == 2
