"""What no transaction committed, told from batches."""

from __future__ import annotations

from pathlib import Path

from tests.unit.spark.segments import batch, marker, segment

from barnabas.records.control import ControlType
from barnabas.spark.logfiles.transactions import (
    OPEN_END,
    Transactions,
    Uncommitted,
    UncommittedBatches,
)
from barnabas.spark.logfiles.walk import LogFile, walk_headers


def follow(*paths: Path) -> list[Uncommitted]:
    transactions = Transactions()
    for path in paths:
        with LogFile(str(path)) as file:
            transactions.follow(walk_headers(file, 0))
    return transactions.uncommitted()


def test_aborted_and_open_transactions_are_found_across_segments(tmp_path: Path) -> None:
    first = segment(
        tmp_path,
        "t-0",
        0,
        batch(0, b"committed", producer=1),
        batch(1, b"aborted", producer=2),
        batch(2, b"plain"),
        marker(3, 1, ControlType.COMMIT),
    )
    second = segment(
        tmp_path,
        "t-0",
        4,
        batch(4, b"aborted", b"too", producer=2),
        marker(6, 2, ControlType.ABORT),
        batch(7, b"open", producer=1),
        batch(8, b"committed", producer=2),
        marker(9, 2, ControlType.COMMIT),
    )
    assert follow(first, second) == [Uncommitted(2, 1, 6), Uncommitted(1, 7, OPEN_END)]


def test_a_marker_without_records_before_it_means_nothing(tmp_path: Path) -> None:
    path = segment(tmp_path, "t-0", 0, marker(0, 5, ControlType.ABORT), batch(1, b"x", producer=5))
    assert follow(path) == [Uncommitted(5, 1, OPEN_END)]


def test_batches_are_uncommitted_by_producer_and_offset() -> None:
    batches = UncommittedBatches([Uncommitted(2, 1, 6), Uncommitted(2, 20, OPEN_END)])
    assert [offset for offset in (0, 1, 6, 7, 19, 20, 99) if batches.holds(2, offset)] == [
        *(1, 6, 20, 99)
    ]
    assert not batches.holds(1, 1)
