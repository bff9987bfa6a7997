"""The progress of a reassignment as a bar, if a person watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from barnabas.admin.moves.progress import Progress


@contextmanager
def progress_bar() -> Iterator[Callable[[Sequence[Progress]], None]]:
    """Show progress on standard error if it is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("copying", total=None)
        whole = 0

        def show(progress: Sequence[Progress]) -> None:
            nonlocal whole
            # Partitions that are done are no longer in the sum, and still count.
            whole = max(whole, sum(each.total_bytes for each in progress))
            left = sum(each.total_bytes - each.copied_bytes for each in progress)
            moving = sum(each.is_moving for each in progress)
            bars.update(
                task,
                total=whole or 1,
                completed=(whole or 1) - left,
                description=f"partitions being reassigned: {moving}",
            )

        yield show
