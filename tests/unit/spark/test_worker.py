"""What a worker keeps is one thing for all of its tasks, and outside of tasks it does nothing."""

from __future__ import annotations

import gc

import pytest

pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")
pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

from barnabas.spark.worker import consumers, settle


def test_all_tasks_share_their_consumers() -> None:
    assert consumers() is consumers()


def test_only_workers_are_settled() -> None:
    before = gc.get_freeze_count()
    settle()
    assert gc.get_freeze_count() == before
