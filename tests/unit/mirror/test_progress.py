"""Rates are of the last seconds, or of the whole run."""

from __future__ import annotations

from barnabas.mirror.progress import MirrorProgress


def test_a_rate_counts_the_last_seconds_only() -> None:
    progress = MirrorProgress(now_ms=0)
    progress.committed(10_000, 0, 1000)
    progress.committed(500, 20, 9000)
    report = progress.report(10_000)
    assert (report.records, report.skipped, report.transactions) == (10_500, 20, 2)
    assert report.records_per_second == 500 / 9  # since the mark before the window
    assert progress.report(10_000, total=True).records_per_second == 1050


def test_nothing_happens_at_no_rate() -> None:
    report = MirrorProgress(now_ms=5).report(5)
    assert report.records_per_second == 0
    assert report.document()["lag"] is None
