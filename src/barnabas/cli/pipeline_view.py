"""Progress of a pipeline: a table that is redrawn on a terminal, or plain lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from barnabas.cli.output import size_text

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from barnabas.pipeline.progress import FlowReport

COLUMNS = ("flow", "", "rows", "rows/s", "lag", "behind", "batch", "state", "watermark")


class PipelineView:
    """The table, inside `with`; nothing without a terminal."""

    def __init__(self, *, wanted: bool) -> None:
        self._live: Live | None = None
        self._wanted = wanted and sys.stdout.isatty()

    @property
    def is_drawn(self) -> bool:
        """Whether there is a terminal to draw on."""
        return self._live is not None

    def show(self, flows: Sequence[FlowReport]) -> None:
        """Draw the table again."""
        assert self._live is not None
        self._live.update(table(flows), refresh=True)

    def __enter__(self) -> PipelineView:
        if self._wanted:
            from rich.live import Live

            self._live = Live(transient=True, auto_refresh=False).__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, value, traceback)
            self._live = None


def table(flows: Sequence[FlowReport]) -> Table:
    """Return the flows as a table."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for number, column in enumerate(COLUMNS):
        drawn.add_column(column, justify="left" if number < 2 else "right")
    for flow in flows:
        drawn.add_row(*(Text(cell) for cell in cells(flow)))
    return drawn


def cells(flow: FlowReport) -> list[str]:
    """Return a flow's row of the table."""
    return [
        flow.name,
        flow.state,
        f"{flow.rows:,}",
        f"{flow.rows_per_second:,.0f}",
        "-" if flow.lag is None else f"{flow.lag:,}",
        behind(flow),
        "-" if flow.batch_ms is None else f"{flow.batch_ms:,} ms",
        "-"
        if flow.state_rows is None
        else f"{flow.state_rows:,} rows, {size_text(flow.state_bytes)}",
        "-" if flow.watermark is None else flow.watermark[11:19],
    ]


def behind(flow: FlowReport) -> str:
    """Return the lag in seconds."""
    if flow.behind_s is None:
        return "-"
    return f"{'>' if flow.at_least else ''}{flow.behind_s:.0f} s"


def plain(flows: Sequence[FlowReport]) -> Iterator[str]:
    """Yield a line for each flow."""
    for flow in flows:
        name, state, rows, rate, lag, late, batch, kept, _ = cells(flow)
        line = f"{name}: {state}, {rows} rows, {rate}/s"
        if flow.lag is not None:
            line += f", lag {lag} ({late})"
        line += f", batch {batch}"
        if flow.state_rows is not None:
            line += f", state {kept}"
        yield line
