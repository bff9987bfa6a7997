"""Data directories belong to workers or to one broker, never to both."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.model.errors import ConfigError
from barnabas.workers.directories import check_for_one, check_for_workers, workers_in


def owned(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / "meta.properties").write_text("version=0\n")


def test_new_directories_are_for_anybody(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing"):
        check_for_workers([str(path)], 3)
        check_for_one([str(path)])


def test_a_single_broker_keeps_its_directory(tmp_path: Path) -> None:
    owned(tmp_path)
    check_for_one([str(tmp_path)])
    with pytest.raises(ConfigError, match="a single broker has its data there; start it without"):
        check_for_workers(["/nowhere", str(tmp_path)], 3)


def test_workers_keep_theirs(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        owned(tmp_path / f"worker-{number}")
    (tmp_path / "worker-11").mkdir()  # nothing was stored there
    owned(tmp_path / "worker-x")
    assert workers_in(str(tmp_path)) == [1, 2, 10]
    check_for_workers([str(tmp_path)], 10)
    check_for_workers([str(tmp_path)], 12)
    with pytest.raises(ConfigError, match="worker 10 has data there; start it with --workers 10"):
        check_for_workers([str(tmp_path)], 9)
    with pytest.raises(ConfigError, match=r"3 workers have their data there; .* --workers 10"):
        check_for_one([str(tmp_path)])
