"""Updates one after the other, with a stand-in for Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

from barnabas.model.ids import TopicPartition
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.run import Run
from barnabas.pipeline.sketch import Sketch
from barnabas.pipeline.spec import Spec
from barnabas.pipeline.updates import Refresh

SPEC = Spec(Path("spark-pipeline.yml"), "p", "file:///s", None, None, {}, ())
WAIT_S = 120
PLACE = TopicPartition("t", 0)

Update = Callable[[Any], None]


@pytest.fixture(autouse=True)
def no_reports_are_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.pipeline.run.REPORTS_S", 0.1)
    monkeypatch.setattr("barnabas.pipeline.run.STOP_S", WAIT_S)  # the machine may be busy


class Spark:
    """Runs what a test says in the place of an update."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, update: Update) -> None:
        self.refreshes: list[Refresh] = []
        self.listeners: list[Any] = []
        self.active: list[Any] = []
        self.session = SimpleNamespace(
            streams=SimpleNamespace(
                addListener=self.listeners.append,
                removeListener=self.listeners.remove,
                active=self.active,
            )
        )

        def run(spark: Any, spec: Spec, tell: Any, *, refresh: Refresh) -> None:
            self.refreshes.append(refresh)
            tell("Flow f is STARTING.")
            update(self)
            for listener in self.listeners:
                listener.onQueryTerminated(None)

        monkeypatch.setattr("barnabas.pipeline.run.update", run)

    def run(self, *, continuous: bool = False, refresh: Refresh | None = None) -> Run:
        engine: Any = self
        run = Run(engine, SPEC, Sketch(), continuous=continuous, refresh=refresh or Refresh())
        run.start()
        return run


def test_once_is_one_update(monkeypatch: pytest.MonkeyPatch) -> None:
    spark = Spark(monkeypatch, lambda self: None)
    run = spark.run(refresh=Refresh(["a"]))
    assert run.wait(WAIT_S)
    run.stop()
    assert run.updates == 1
    assert spark.refreshes == [Refresh(["a"])]
    assert spark.listeners == []
    assert [flow.name for flow in run.flows()] == ["f"]


def test_only_the_first_of_many_updates_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    enough = threading.Event()

    def update(self: Spark) -> None:
        if len(self.refreshes) == 3:
            enough.set()

    spark = Spark(monkeypatch, update)
    run = spark.run(continuous=True, refresh=Refresh(everything=True))
    assert enough.wait(WAIT_S)
    run.stop()
    assert run.wait(0)
    assert spark.refreshes[0] == Refresh(everything=True)
    assert set(map(str, spark.refreshes[1:])) == {str(Refresh())}


def test_the_next_update_waits_for_something_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = [threading.Event(), threading.Event()]
    spark = Spark(monkeypatch, lambda self: ran[len(self.refreshes) - 1].set())
    monkeypatch.setattr("barnabas.pipeline.run._Watch.knows_sources", True)
    ends = {PLACE: 5}
    monkeypatch.setattr("barnabas.pipeline.run._Watch.ends", lambda self: dict(ends))
    run = spark.run(continuous=True)
    assert ran[0].wait(WAIT_S)
    assert not ran[1].wait(0.3)  # it has read to where the log ends
    ends[PLACE] = 6
    run._look()
    assert ran[1].wait(WAIT_S)
    run.stop()


def test_what_ends_an_update_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Spark) -> None:
        raise PipelineError("no such column")

    run = Spark(monkeypatch, fail).run(continuous=True)
    with pytest.raises(PipelineError, match="no such column"):
        run.wait(WAIT_S)
    run.stop()


def test_what_is_stopped_has_not_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    began, stopped = threading.Event(), threading.Event()

    def update(self: Spark) -> None:
        self.active.append(SimpleNamespace(stop=stopped.set))
        began.set()
        assert stopped.wait(WAIT_S)
        raise PipelineError("the query was stopped")

    run = Spark(monkeypatch, update).run()
    assert began.wait(WAIT_S)
    run.stop()
    assert run.wait(0)
    assert run.updates == 0


def test_a_spark_that_is_gone_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.pipeline.run.STOP_S", 0.3)
    began, over = threading.Event(), threading.Event()

    def update(self: Spark) -> None:
        began.set()
        over.wait(WAIT_S)  # as a call that is tried again and again

    def silent() -> None:
        over.wait(WAIT_S)

    def refusing() -> None:
        raise OSError("nobody is there")

    for answer in (silent, refusing):
        spark = Spark(monkeypatch, update)
        run = spark.run()
        assert began.wait(WAIT_S)
        spark.active.append(SimpleNamespace(stop=answer))
        run.stop()
        assert not run.wait(0)
        over.set()
        assert run.wait(WAIT_S)
        began.clear()
        over.clear()
