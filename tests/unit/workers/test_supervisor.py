"""The supervisor around its crew, with children that only pretend to be brokers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.model.errors import ConfigError, StorageError
from barnabas.workers import supervisor as module
from barnabas.workers.channel import InSync, Orders, Ready, Report
from barnabas.workers.log_lines import LineCopier
from barnabas.workers.plan import WorkerPlan
from barnabas.workers.supervisor import Serving, Supervisor


class Pretender:
    """A child that serves at once, and ends as it is told."""

    born: list[Pretender]

    def __init__(
        self, orders: Orders, level: str, copier: LineCopier, take: Callable[[Report], object]
    ) -> None:
        self.orders, self._take = orders, take
        self.code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.born.append(self)

    async def run(self) -> int:
        number = self.orders.number
        if self.orders.values.get("broker.rack") == "broken":
            return 1
        self._take(Ready([f"PLAINTEXT://h:{number}"], {"PLAINTEXT": 40_000 + number}, None, None))
        self._take(InSync())
        return await self.code

    def end(self, code: int) -> None:
        if not self.code.done():
            self.code.set_result(code)

    def terminate(self) -> None:
        self.end(0)

    def kill(self) -> None:
        self.end(-9)


@pytest.fixture
def born(monkeypatch: pytest.MonkeyPatch) -> list[Pretender]:
    """The children, in the order in which they were started."""
    monkeypatch.setattr(module, "Child", Pretender)
    Pretender.born = []
    return Pretender.born


def values(folder: Path, **more: str) -> dict[str, str]:
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder / "data")}
    return given | {"barnabas.workers": "2"} | {k.replace("_", "."): v for k, v in more.items()}


def supervised(
    folder: Path, act: Callable[[Supervisor], Any], after: dict[str, str] | None = None, **more: str
) -> list[list[Serving]]:
    """Run workers, and `act` when all are ready; return what was announced."""
    announced: list[list[Serving]] = []

    async def live() -> None:
        def ready(serving: list[Serving]) -> None:
            announced.append(serving)
            asyncio.get_running_loop().call_soon(act, supervisor)

        supervisor = Supervisor(
            WorkerPlan(values(folder, **more), "m"),
            log_level="info",
            read_plan=lambda: WorkerPlan(values(folder, **(more | (after or {}))), "m"),
            on_ready=ready,
            on_rolled=lambda: supervisor.stop(),
        )
        async with asyncio.timeout(60):
            await supervisor.run()

    asyncio.run(live())
    return announced


def test_workers_are_announced_when_all_are_ready(tmp_path: Path, born: list[Pretender]) -> None:
    [serving] = supervised(tmp_path, lambda supervisor: supervisor.stop())
    assert [(each.broker_id, each.ready.endpoints) for each in serving] == [
        (1, ["PLAINTEXT://h:1"]),
        (2, ["PLAINTEXT://h:2"]),
    ]
    assert [each.orders.number for each in born] == [1, 2]
    tree = tmp_path / "data" / "coordination"
    assert {each.orders.tree for each in born} == {f"{tree}.sock"} or len(str(tree)) > 90
    assert not tree.with_suffix(".sock").exists()
    assert tree.with_suffix(".sqlite").exists()


def test_a_rolling_restart_has_the_new_options(tmp_path: Path, born: list[Pretender]) -> None:
    supervised(tmp_path, lambda supervisor: supervisor.roll(), {"num_partitions": "7"})
    assert [each.orders.number for each in born] == [1, 2, 1, 2]
    assert [each.orders.values.get("num.partitions") for each in born] == [None, None, "7", "7"]
    assert born[2].orders.values["listeners"] == "PLAINTEXT://127.0.0.1:40001"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"num_partitions": "many"}, "num.partitions=many"),
        ({"barnabas_workers": "3"}, "barnabas.workers=3: a change from 2 needs a stop"),
        ({"log_dirs": "/elsewhere"}, "log.dirs=('/elsewhere',): a change from"),
    ],
)
def test_options_that_cannot_change_restart_nobody(
    changed: dict[str, str],
    said: str,
    tmp_path: Path,
    born: list[Pretender],
    caplog: pytest.LogCaptureFixture,
) -> None:
    supervised(tmp_path, lambda supervisor: supervisor.roll(), changed)
    assert len(born) == 2
    assert any(f"rolling restart not started: {said}" in line for line in caplog.messages)


def test_a_worker_that_dies_comes_back(
    tmp_path: Path, born: list[Pretender], caplog: pytest.LogCaptureFixture
) -> None:
    def act(supervisor: Supervisor) -> None:
        born[0].end(-9)
        ready = supervisor.crew.ready

        def again(number: int, now_s: float) -> Any:
            actions = ready(number, now_s)
            asyncio.get_running_loop().call_soon(supervisor.stop)
            return actions

        supervisor.crew.ready = again  # type: ignore[method-assign]

    supervised(tmp_path, act)
    assert [each.orders.number for each in born] == [1, 2, 1]
    assert "worker 1: ended with signal 9, restarted in 0.1 s" in caplog.messages


def test_failures_are_the_exit_code(tmp_path: Path, born: list[Pretender]) -> None:
    with pytest.raises(ConfigError, match="worker 1 could not start; its last lines say why"):
        supervised(tmp_path, lambda supervisor: None, broker_rack="broken")

    def act(supervisor: Supervisor) -> None:
        born[-1].terminate = lambda: born[-1].end(-9)  # type: ignore[method-assign]
        born[-2].terminate = lambda: born[-2].end(3)  # type: ignore[method-assign]
        supervisor.stop()

    with pytest.raises(StorageError, match=r"did not stop cleanly: 2 \(signal 9\), 1 \(exit code"):
        supervised(tmp_path, act)


def test_a_directory_of_one_broker_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").touch()
    with pytest.raises(ConfigError, match="a single broker has its data there"):
        supervised(tmp_path, lambda supervisor: None)


def test_a_long_path_has_its_socket_elsewhere(
    tmp_path: Path, born: list[Pretender], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    folder = tmp_path / ("d" * 100)
    supervised(folder, lambda supervisor: supervisor.stop())
    socket = born[0].orders.tree
    assert socket is not None
    assert len(socket) <= 100
    assert not Path(socket).parent.exists()
