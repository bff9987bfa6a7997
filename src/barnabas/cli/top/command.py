"""`barnabas top`: watch throughput, lag, brokers and latency of a cluster, live.

Everything comes through the admin protocol, so that any cluster can be watched; bytes sent, busy
brokers and latencies are read from the brokers' metrics, where these are served.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import asdict

from barnabas.cli.arguments import add_connection, seconds
from barnabas.cli.output import print_json
from barnabas.cli.session import run
from barnabas.cli.top.controls import Controls, Order, sorted_groups, sorted_topics
from barnabas.cli.top.endpoints import TOKEN, given_endpoints, parse_endpoint
from barnabas.cli.top.gather import Gatherer
from barnabas.cli.top.reading import Reading, Readings
from barnabas.cli.top.sample import Sample
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import BarnabasError

FIRST_S = 1.5
"""Until the second sample: the first rates come soon, but pages of metrics last for a second."""
PLAIN_WIDTH = 200
"""Of lines that are not for a terminal."""

EPILOG = f"""\
examples:
  barnabas top
  barnabas top --sort seconds --interval 5
  barnabas top --metrics 1=http://broker1:9404/metrics --metrics 2=http://broker2:9404/metrics
  barnabas top --once --json

Keys: q quits, s sorts by something else, space pauses, h shows all keys.

Records per second are counted by offsets, so that markers of transactions count, too. Without
metrics, bytes per second (marked *) are what logs have grown by, and bytes sent and latencies are
not known: brokers are asked for barnabas.metrics.listener, or use --metrics. Kafka's brokers need
a JMX exporter for that. ${TOKEN} has the token, if one is needed.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EPILOG
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=seconds,
        default=2.0,
        help="time between two samples (default: 2)",
    )
    parser.add_argument(
        "--once", action="store_true", help="take two samples, print what they say, and exit"
    )
    parser.add_argument(
        "--sort",
        metavar="ORDER",
        choices=[order.value for order in Order],
        default=Order.LAG.value,
        help=f"{', '.join(Order)} (default: lag): groups by lag in records or in seconds, or by "
        "records read per second; topics by records or bytes per second; or both by name",
    )
    parser.add_argument(
        "--metrics",
        metavar="[BROKER=]URL",
        type=parse_endpoint,
        action="append",
        default=[],
        help="a broker's metrics for Prometheus; may be repeated (default: where brokers say that "
        "they serve them)",
    )
    parser.add_argument(
        "--internal", action="store_true", help="include internal topics like __consumer_offsets"
    )
    add_connection(parser)
    parser.set_defaults(run=_top)


def _top(arguments: argparse.Namespace) -> None:
    watch = _print_on
    if sys.stdout.isatty() and not arguments.once and not arguments.json:
        watch = _watch
    run(arguments, lambda client: watch(client, arguments))


async def _print_on(client: ClusterClient, arguments: argparse.Namespace) -> None:
    """Print a reading after each interval: to a pipe, as JSON, or once."""
    gatherer = Gatherer(client, given_endpoints(arguments.metrics))
    controls = Controls(Order(arguments.sort))
    readings = Readings(internal=arguments.internal)
    readings.of(await gatherer.sample())
    due_s = time.monotonic()
    while True:
        due_s = max(due_s + arguments.interval, time.monotonic())
        await asyncio.sleep(due_s - time.monotonic())
        _print(readings.of(await gatherer.sample()), controls, arguments)
        if arguments.once:
            return


def _print(reading: Reading, controls: Controls, arguments: argparse.Namespace) -> None:
    if arguments.json:
        document = _document(reading, controls.order)
        if arguments.once:
            print_json(document)
        else:
            print(json.dumps(document, ensure_ascii=False), flush=True)
        return
    from barnabas.cli.top.screen import lines_of

    width = PLAIN_WIDTH
    if sys.stdout.isatty():
        from rich.console import Console

        width = Console().width
    for text, _ in lines_of(reading, controls, width, None):
        print(text)
    if not arguments.once:
        print(flush=True)


def _document(reading: Reading, order: Order) -> dict[str, object]:
    topics = sorted_topics(reading.topics, order)
    groups = sorted_groups(reading.groups, order)
    return {
        **asdict(reading),
        "topics": [asdict(row) for row in topics],
        "groups": [asdict(row) for row in groups],
    }


async def _watch(client: ClusterClient, arguments: argparse.Namespace) -> None:
    """Draw on the terminal until the user has seen enough."""
    # Only here: drawing is a third of what has to be imported.
    from barnabas.cli.top.screen import Line, lines_of
    from barnabas.cli.top.view import View

    gatherer = Gatherer(client, given_endpoints(arguments.metrics))
    controls = Controls(Order(arguments.sort))
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()
    readings = Readings(internal=arguments.internal)
    reading: Reading | None = None
    trouble: str | None = None
    due_s = loop.time()
    sampling: asyncio.Task[Sample] | None = None

    def pressed(key: str) -> None:
        controls.press(key)
        changed.set()

    with View(pressed, changed.set) as view:
        try:
            while not controls.ended:
                if sampling is not None and sampling.done():
                    try:
                        after = sampling.result()
                    except BarnabasError as failure:
                        if reading is None:
                            raise
                        trouble = str(failure)
                    else:
                        reading, trouble = readings.of(after), None
                    sampling = None
                now_s = loop.time()
                if sampling is None and not controls.paused and now_s >= due_s:
                    interval_s = arguments.interval
                    due_s = now_s + (
                        interval_s if reading is not None else min(interval_s, FIRST_S)
                    )
                    sampling = loop.create_task(gatherer.sample())
                    sampling.add_done_callback(lambda _: changed.set())
                width, height = view.size
                lines = [Line("reading the cluster …")]
                if reading is not None:
                    lines = lines_of(reading, controls, width, height - (trouble is not None))
                if trouble is not None:
                    lines = [Line(f"! no answer: {trouble}", "bad"), *lines]
                view.show(lines)
                timer = None
                if sampling is None and not controls.paused:
                    timer = loop.call_at(due_s, changed.set)
                await changed.wait()
                changed.clear()
                if timer is not None:
                    timer.cancel()
        finally:
            if sampling is not None:
                sampling.cancel()
                await asyncio.gather(sampling, return_exceptions=True)
