"""A scrape is made in pieces, between which the loop goes on: no piece grows with the partitions.

Times differ from run to run, so the lines of Python that each piece runs are counted.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from tests.unit.broker.serving import Serving, create_topic

from barnabas.broker.broker import Broker
from barnabas.broker.monitoring.family import RUN
from barnabas.metrics.exposition import SLICE_S, Exposition, Form


def longest_piece(broker: Broker) -> tuple[int, int]:
    """Return how many lines the longest piece of a scrape runs, and how many pieces there are.

    The clock goes on by a slice whenever it is asked, so that a piece ends wherever it may end.
    """
    clock = itertools.count()
    lines = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    def pieces(chunks: Iterator[bytes]) -> Iterator[int]:
        nonlocal lines
        before = sys.gettrace()
        sys.settrace(count)
        try:
            for _ in chunks:
                yield lines
                lines = 0
        finally:
            sys.settrace(before)

    exposition = Exposition(broker.metrics, Form(), lambda: next(clock) * SLICE_S)
    counted = list(pieces(exposition.chunks()))
    assert exposition.failures == []
    return max(counted), len(counted)


def test_no_piece_of_a_scrape_grows_with_the_partitions(tmp_path: Path) -> None:
    with Serving(tmp_path) as serving:
        broker = serving.broker
        with serving.connect() as wire:
            create_topic(wire, "t")
        one = broker.partitions["t", 0]

        def scrape_of(count: int) -> tuple[int, int]:
            """Scrape as if the broker had many partitions: all are the same one."""
            aliases = {("t", number): one for number in range(1, count)}
            broker.partitions.update(aliases)
            try:
                longest_piece(broker)  # texts of labels are made once
                return longest_piece(broker)
            finally:
                for key in aliases:
                    del broker.partitions[key]

        few_lines, few_pieces = serving.inside(lambda: scrape_of(RUN))
        many_lines, many_pieces = serving.inside(lambda: scrape_of(4 * RUN))
    assert few_lines > RUN, "every partition is looked at"
    assert many_lines <= few_lines * 1.1
    assert many_pieces > few_pieces + 3 * RUN // 256
