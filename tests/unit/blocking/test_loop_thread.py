"""The loop's thread: calls from any thread, interrupted waits, forks, and a clean exit."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.errors import ClientForkedError, IllegalStateError, KafkaTimeoutError


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    made = LoopThread("test-client")
    yield made
    made.stop()


async def never(events: list[str] | None = None) -> None:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        if events is not None:
            events.append("cancelled")
        raise


async def which_thread() -> str:
    return threading.current_thread().name


def test_a_coroutine_runs_on_the_thread_and_its_result_comes_back(thread: LoopThread) -> None:
    assert thread.call(which_thread()) == "test-client"


def test_a_failure_is_raised_where_it_was_called(thread: LoopThread) -> None:
    async def fail() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        thread.call(fail(), timeout_ms=10_000)


def test_a_call_that_takes_too_long_is_cancelled(thread: LoopThread) -> None:
    events: list[str] = []
    with pytest.raises(KafkaTimeoutError, match="not completed within 10 ms"):
        thread.call(never(events), timeout_ms=10)
    thread.call(asyncio.sleep(0))
    assert events == ["cancelled"]


def test_posted_functions_run_in_order_and_may_post_again(thread: LoopThread) -> None:
    seen: list[int] = []
    done = threading.Event()

    def again() -> None:
        seen.append(2)
        thread.post(done.set)

    thread.post(seen.append, 1)
    thread.post(again)
    assert done.wait(10)
    assert seen == [1, 2]


def test_waiting_inside_a_callback_is_refused_instead_of_hanging(thread: LoopThread) -> None:
    async def inside() -> None:
        thread.call(which_thread())

    with pytest.raises(IllegalStateError, match="inside its own callbacks"):
        thread.call(inside())


def test_after_stop_the_thread_is_gone_and_calls_say_so(thread: LoopThread) -> None:
    events: list[str] = []
    thread.post(lambda: asyncio.ensure_future(never(events)))
    thread.call(asyncio.sleep(0))
    thread.stop()
    assert not thread.running
    assert events == ["cancelled"]
    with pytest.raises(IllegalStateError, match="is closed"):
        thread.call(which_thread())
    thread.stop()


def test_a_thread_that_nobody_holds_ends() -> None:
    forgotten = LoopThread("forgotten")
    handle = forgotten._thread
    del forgotten
    gc.collect()
    handle.join(10)
    assert not handle.is_alive()


def test_ctrl_c_interrupts_a_wait_at_once(thread: LoopThread) -> None:
    events: list[str] = []
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    delays = []
    for _ in range(10):
        thread.post(lambda: asyncio.get_event_loop().call_later(0.02, interrupt))
        with pytest.raises(KeyboardInterrupt):
            thread.call(never(events))
        delays.append(time.monotonic() - sent[-1])
    assert sorted(delays)[5] < 0.05, delays
    thread.call(asyncio.sleep(0))
    assert events == ["cancelled"] * 10


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_is_told_and_leaves_the_parent_alone(thread: LoopThread) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"nothing"
        try:
            coroutine = which_thread()
            try:
                thread.call(coroutine)
            except ClientForkedError as refusal:
                said = str(refusal).encode()
            thread.stop()
            gc.collect()
        finally:
            os.write(writing, said)
            os._exit(0)
    os.close(writing)
    said = os.read(reading, 1000).decode()
    os.close(reading)
    assert os.waitpid(child, 0)[1] == 0
    assert "create a new client after the fork" in said
    assert str(os.getpid()) in said
    assert thread.call(which_thread()) == "test-client"


EXIT = """
import asyncio, os, sys
from barnabas.blocking.loop_thread import LoopThread
kept = LoopThread("kept")
async def forever():
    try:
        await asyncio.Event().wait()
    finally:
        print("ended", flush=True)
kept.post(lambda: setattr(kept, "task", asyncio.ensure_future(forever())))
kept.call(asyncio.sleep(0))
if sys.argv[1] == "fork":
    child = os.fork()
    if child == 0:
        kept.task = None
        del kept
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    kept.call(asyncio.sleep(0))
"""


@pytest.mark.parametrize("way", ["plain", "fork"])
def test_the_interpreter_exits_without_hanging(way: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", EXIT, way],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "ended\n", "")


FORK_WITH_CONNECTION = """
import gc, os, sys
from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.addresses import Address
from barnabas.testing.cluster import Cluster

cluster = Cluster(process=True)
cluster.start()
port = int(cluster.bootstrap.rpartition(":")[2])
client = LoopThread("client")
board = ClusterClient([Address("localhost", port)])
client.hold(board)
client.call(board.refresh(), 10_000)
connection = client.call(board.connection(), 10_000)
for _ in range(3):
    child = os.fork()
    if child == 0:
        del board, client
        gc.collect()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    # A child must not have what was printed so far to print again.
    print(len(client.call(board.refresh(), 10_000).brokers), flush=True)
    assert client.call(board.connection(), 10_000) is connection
client.call(board.close())
cluster.close()
"""


def test_a_forked_child_that_ends_does_not_deafen_the_connections_of_its_parent() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK_WITH_CONNECTION],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "1\n" * 3, "")
