"""What must be installed for pipelines, told before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline import engine
from barnabas.pipeline.errors import PipelineError


@pytest.fixture(autouse=True)
def all_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "NEEDED", ("json",))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")


def test_nothing_is_missing() -> None:
    assert engine.missing() is None


def test_packages_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "NEEDED", ("json", "no_such", "no.such"))
    said = engine.missing()
    assert said is not None
    assert "no_such, no.such is missing: pip install 'barnabas[spark]'" in said


def test_java_that_is_missing_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert "there is no java on the PATH" in (engine.missing() or "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert f"JAVA_HOME={tmp_path}: has no bin/java" in (engine.missing() or "")


def test_connect_mode_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    name = "SPARK_CONNECT_MODE_ENABLED"
    monkeypatch.delenv(name, raising=False)
    with engine.connect_mode():
        assert os.environ[name] == "1"
    assert name not in os.environ
    monkeypatch.setenv(name, "0")
    with engine.connect_mode():
        assert os.environ[name] == "1"
    assert os.environ[name] == "0"


def test_the_jvm_of_earlier_sessions_is_put_aside_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")
    from pyspark import SparkContext

    earlier = object(), object()
    seen = []

    def launch(conf: object, options: object) -> None:
        seen.append((SparkContext._gateway, SparkContext._jvm))
        raise RuntimeError("no JVM today")

    monkeypatch.setattr(SparkContext, "_gateway", earlier[0])
    monkeypatch.setattr(SparkContext, "_jvm", earlier[1])
    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launch)
    with pytest.raises(PipelineError, match="no JVM today"):
        engine.Engine("local[1]", {}, tmp_path / "spark.log").start()
    assert seen == [(None, None)]
    assert (SparkContext._gateway, SparkContext._jvm) == earlier
