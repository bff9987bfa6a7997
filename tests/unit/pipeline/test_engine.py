"""What must be installed for pipelines, told before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline import engine


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
