"""`barnabas demo`: run a broker, a click generator and a Spark pipeline until Ctrl-C."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.arguments import count, index, seconds
from barnabas.cli.interruption import INTERRUPTION

if TYPE_CHECKING:
    from rich.console import Group

    from barnabas.pipeline.demo.demo import Demo
    from barnabas.pipeline.demo.windows import Window

EXAMPLES = """\
examples:
  barnabas demo
  barnabas demo --port 9192 --rate 1000
  barnabas demo --seconds 60 --language sql
"""

DRAW_S = 0.5
PLAIN_S = 5.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    parser.set_defaults(run=_run)
    parser.add_argument(
        "--port",
        metavar="N",
        type=index,
        default=9092,
        help="port of the broker (default: 9092; 0 for any free port)",
    )
    parser.add_argument(
        "--console-port",
        metavar="N",
        type=index,
        default=8080,
        help="port of the broker's console, if the extra is installed (default: 8080, or any free"
        " one if it is taken)",
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        type=Path,
        default=Path("data"),
        help="directory for all data (default: data)",
    )
    parser.add_argument(
        "--rate", metavar="N", type=count, default=50, help="clicks per second (default: 50)"
    )
    parser.add_argument(
        "--language",
        choices=["python", "sql"],
        default="python",
        help="language of the pipeline's definitions (default: python)",
    )
    parser.add_argument(
        "--seconds", metavar="N", type=seconds, help="stop after this long (default: at Ctrl-C)"
    )


def _run(arguments: argparse.Namespace) -> int:
    from barnabas.pipeline.demo.demo import Demo

    demo = Demo(
        arguments.data_dir,
        port=arguments.port,
        console_port=arguments.console_port if arguments.port else 0,
        per_second=arguments.rate,
        language=arguments.language,
        random=random.Random(),
    )
    INTERRUPTION.serve()
    INTERRUPTION.last_resort(demo.kill)
    failure = None
    try:
        demo.start()
        deadline_s = None if arguments.seconds is None else time.monotonic() + arguments.seconds
        for line in _head(demo, arguments.data_dir):
            print(line, flush=True)
        if sys.stdout.isatty():
            failure = _draw(demo, deadline_s)
        else:
            failure = _tell(demo, deadline_s)
    except KeyboardInterrupt:
        pass  # this is how it is stopped
    finally:
        with INTERRUPTION.held():
            try:
                print("stopping", flush=True)
            finally:
                demo.stop()
    if failure is not None:
        print(f"barnabas demo: {failure}", file=sys.stderr)
        return 1
    print(
        f"stopped; {demo.sent:,} clicks sent, {demo.counts_seen:,} counts received",
        flush=True,
    )
    INTERRUPTION.closed()
    return 0


def _head(demo: Demo, data: Path) -> Iterator[str]:
    project, at = demo.project, f"--bootstrap {demo.bootstrap}"
    if demo.console is not None:
        yield f"console on {demo.console}"
    yield f"broker on {demo.bootstrap}, data in {data}"
    if demo.lacking is None:
        definitions = [path for path in project.files() if path.startswith("transformations")]
        yield f"pipeline: {', '.join(str(project.directory / path) for path in definitions)}"
    else:
        yield f"no pipeline: {demo.lacking}"
    yield "try in another terminal:"
    yield f"  barnabas consume {project.source} {at}"
    if demo.lacking is None:
        yield f"  barnabas consume {project.target} --from beginning {at}"
        yield f"  barnabas consume {project.dead_letters} --from beginning {at}"
        yield f"  barnabas groups describe {project.name}.page_counts_to_topic {at}"
    yield f"  barnabas topics describe {project.source} {at}"
    yield "Ctrl-C stops everything"


def _goes_on(demo: Demo, deadline_s: float | None) -> bool:
    return demo.failure is None and (deadline_s is None or time.monotonic() < deadline_s)


def _tell(demo: Demo, deadline_s: float | None) -> str | None:
    """Print lines; return the failure that ended it, if any."""
    shown: set[str] = set()
    before: list[Window] = []
    next_s = time.monotonic()
    while _goes_on(demo, deadline_s):
        demo.look()
        windows = demo.windows()
        for window in reversed(windows):
            # The counts of its pages arrive one by one: it is complete when none has changed.
            if window.start not in shown and window in before:
                shown.add(window.start)
                pages = ", ".join(
                    f"{page} {clicks}" for page, clicks in sorted(window.clicks.items())
                )
                print(f"window {_clock(window)}: {window.total} clicks: {pages}", flush=True)
        before = windows
        if time.monotonic() >= next_s:
            next_s = time.monotonic() + PLAIN_S
            print(_status(demo), flush=True)
        time.sleep(DRAW_S)
    return demo.failure


def _status(demo: Demo) -> str:
    text = f"{demo.sent:,} clicks sent"
    if demo.lacking is not None:
        return text
    if not demo.flows:
        return f"{text}; Spark is starting"
    flows = (
        f"{flow['flow']} is starting"
        if flow["lag"] is None
        else f"{flow['flow']} {flow['rows']:,} read, lag {flow['lag']:,}"
        for flow in demo.flows
    )
    return f"{text}; {'; '.join(flows)}"


def _draw(demo: Demo, deadline_s: float | None) -> str | None:
    """Draw on the terminal; return the failure that ended it, if any."""
    from rich.live import Live

    with Live(transient=True, auto_refresh=False) as live:
        while _goes_on(demo, deadline_s):
            demo.look()
            live.update(_drawn(demo), refresh=True)
            time.sleep(DRAW_S)
    return demo.failure


def _drawn(demo: Demo) -> Group:
    from rich.box import SIMPLE_HEAD
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from barnabas.pipeline.demo.clicks import PAGES

    parts: list[Any] = [Text(f"{demo.sent:,} clicks sent", style="bold")]
    if demo.lacking is None and not demo.flows:
        parts.append(Text("Spark is starting …"))
    if demo.flows:
        flows = Table(box=SIMPLE_HEAD, pad_edge=False)
        for column in ("flow", "read", "per second", "lag", "behind", "batch"):
            flows.add_column(column, justify="left" if column == "flow" else "right")
        for flow in demo.flows:
            late = flow["behind_seconds"]
            flows.add_row(
                flow["flow"],
                f"{flow['rows']:,}",
                f"{flow['rows_per_second']:,.0f}",
                "-" if flow["lag"] is None else f"{flow['lag']:,}",
                "-" if late is None else f"{late:.0f} s",
                "-" if flow["batch_ms"] is None else f"{flow['batch_ms']:,} ms",
            )
        parts.append(flows)
    windows = demo.windows()
    if windows:
        counts = Table(box=SIMPLE_HEAD, pad_edge=False, title="clicks per page, from page-counts")
        counts.add_column("window")
        for page in PAGES:
            counts.add_column(page, justify="right")
        for window in windows:
            counts.add_row(_clock(window), *(str(window.clicks.get(page, 0)) for page in PAGES))
        parts.append(counts)
    return Group(*parts)


def _clock(window: Window) -> str:
    return window.start[11:19]
