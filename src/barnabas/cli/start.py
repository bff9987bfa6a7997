"""`barnabas start`: run one broker in the foreground, until a controlled shutdown."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.arguments import assignment, workers
from barnabas.cli.interruption import INTERRUPTION, Hold
from barnabas.model.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.cli.service_manager import ServiceManager
    from barnabas.config.broker import BrokerOptions
    from barnabas.logging.output import LogOutput
    from barnabas.workers.link import SupervisorLink

EXAMPLES = """\
examples:
  barnabas start
  barnabas start --data-dir /var/lib/barnabas --listen 0.0.0.0:9092
  barnabas start --secure
  barnabas start --console
  barnabas start --config server.properties --set log.retention.hours=24
  barnabas start --zookeeper zk1:2181,zk2:2181/kafka --id 1
  barnabas start --workers auto
  barnabas start --metrics 0.0.0.0:9404
  barnabas start --set num.partitions=6 --set auto.create.topics.enable=false
  barnabas start --log-format json --set barnabas.log.dir=/var/log/barnabas

Options have Kafka's names and values; docs/reference/options.md lists them all.
"""

logger = logging.getLogger("barnabas.broker")

SECURITY_DIR = "security"
METRICS_ADDRESS = "127.0.0.1:9404"
CONSOLE = "127.0.0.1:8080"
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = EXAMPLES
    options = parser.add_mutually_exclusive_group()
    options.add_argument("--config", metavar="FILE", help="a Kafka server.properties file")
    options.add_argument(
        "--secure",
        metavar="DIR",
        nargs="?",
        const=SECURITY_DIR,
        help="serve only clients that log in, by the options of a directory of `barnabas security`,"
        " which is created for one broker if it does not exist (default: security)",
    )
    parser.add_argument(
        "--data-dir", metavar="DIR", help="directory of the logs (log.dirs; default: data)"
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="address to listen on (listeners; default: 127.0.0.1:9092; port 0: any free port)",
    )
    parser.add_argument("--id", metavar="N", type=int, help="this broker's id (broker.id)")
    parser.add_argument(
        "--zookeeper", metavar="HOST:PORT[/CHROOT]", help="join a cluster (zookeeper.connect)"
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=workers,
        help="run N brokers, or `auto`: one per core, with consecutive ids and ports from --id and "
        "--listen on, as one cluster (barnabas.workers)",
    )
    parser.add_argument("--worker", metavar="FD", type=int, help=argparse.SUPPRESS)
    parser.add_argument(
        "--metrics",
        metavar="HOST:PORT",
        nargs="?",
        const=METRICS_ADDRESS,
        help="serve metrics for Prometheus and the broker's health over HTTP "
        f"(barnabas.metrics.listener; default: {METRICS_ADDRESS})",
    )
    parser.add_argument(
        "--console",
        metavar="HOST:PORT",
        nargs="?",
        const=CONSOLE,
        help="serve pages about the broker and its cluster to browsers (barnabas.console.listener;"
        f" default: {CONSOLE})",
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        dest="settings",
        type=assignment,
        action="append",
        default=[],
        help="set any option by name; may be repeated",
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="level from which lines are logged (default: info); "
        "`barnabas configs alter --broker-loggers` changes it while the broker runs",
    )
    parser.add_argument(
        "--log-format",
        choices=("plain", "json", "ecs"),
        help="how log lines look: for people, or a JSON object each (barnabas.log.format)",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Start, report readiness in one line, serve until SIGTERM or SIGINT, stop cleanly."""
    INTERRUPTION.serve()
    # Ctrl-C on a script also stops the broker that the script has started in the background.
    INTERRUPTION.listen(in_background=True)
    from barnabas.cli.service_manager import ServiceManager
    from barnabas.logging.output import LogOutput

    manager = ServiceManager.of_environment(os.environ, os.getpid())
    output = LogOutput(sys.stderr, arguments.log_level.upper())
    try:
        return _run(arguments, output, manager)
    finally:
        output.close()


def _run(arguments: argparse.Namespace, output: LogOutput, manager: ServiceManager) -> int:
    from barnabas.config.broker import BrokerOptions
    from barnabas.workers.directories import check_for_one

    link = None
    if arguments.worker is not None:
        from barnabas.workers.link import SupervisorLink

        link = SupervisorLink(arguments.worker)
        options = BrokerOptions.parse(link.orders.values)
    else:
        options = BrokerOptions.parse(option_values(arguments))
        if options.barnabas_workers:
            from barnabas.cli.supervision import supervise

            return supervise(arguments, options, output, manager)
        check_for_one(options.log_directories)
    use_log_options(options, output)
    for warning in options.warnings():
        logging.getLogger("barnabas.config").warning(warning)
    _keep_buffers()
    from barnabas import kernels

    if kernels.NAME == "python":
        logger.warning(
            "compiled kernels are missing: using the Python ones, which are many times slower; "
            "install a C compiler and reinstall barnabas"
        )
    try:
        import uvloop
    except ImportError:
        logging.getLogger("barnabas.broker").warning(
            "uvloop is missing: using the slower asyncio loop"
        )
        run_loop: Callable[[Coroutine[Any, Any, None]], None] = asyncio.run
    else:
        run_loop = uvloop.run
    hints: list[str] = []
    if arguments.secure is not None:
        from barnabas.cli.security import how_to_connect

        hints = how_to_connect(Path(arguments.secure))
    with INTERRUPTION.held(patient=True) as hold:
        run_loop(_serve(options, hold, hints, output, manager, link))
    return 0


def use_log_options(options: BrokerOptions, output: LogOutput) -> None:
    """Write log lines as options say; raise ConfigError if their files cannot be written."""
    if options.broker_id >= 0:
        output.broker_id = options.broker_id
    output.use_format(options.barnabas_log_format)
    directory = options.barnabas_log_dir
    if directory is not None:
        try:
            output.use_files(
                directory,
                bytes_max=options.barnabas_log_file_max_bytes,
                backups=options.barnabas_log_file_backups,
            )
        except OSError as failure:
            raise ConfigError(f"barnabas.log.dir={directory}: cannot write: {failure}") from failure


def option_values(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the values of broker options, by name, that a command line and its file give."""
    from barnabas.config.properties import read_properties

    values: dict[str, str] = {"listeners": "PLAINTEXT://127.0.0.1:9092"}
    if arguments.config is not None:
        try:
            text = Path(arguments.config).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as failure:
            raise ConfigError(f"--config {arguments.config}: cannot read: {failure}") from failure
        values.update(read_properties(text))
    elif arguments.secure is not None:
        from barnabas.cli.security import options_to_start

        values.update(options_to_start(Path(arguments.secure), arguments.listen, arguments.id))
    if arguments.data_dir is not None:
        values["log.dirs"] = arguments.data_dir
    if arguments.listen is not None:
        protocol = "PLAINTEXT" if arguments.secure is None else "SASL_SSL"
        values["listeners"] = f"{protocol}://{arguments.listen}"
    if arguments.id is not None:
        values["broker.id"] = str(arguments.id)
    if arguments.zookeeper is not None:
        values["zookeeper.connect"] = arguments.zookeeper
    if arguments.workers is not None:
        values["barnabas.workers"] = str(arguments.workers)
    if arguments.metrics is not None:
        values["barnabas.metrics.listener"] = arguments.metrics
    if arguments.log_format is not None:
        values["barnabas.log.format"] = arguments.log_format
    if arguments.console is not None:
        values["barnabas.console.listener"] = arguments.console
    values.update(arguments.settings)
    if "log.dir" not in values:  # log.dirs would override it
        values.setdefault("log.dirs", "data")
    return values


async def _serve(
    options: BrokerOptions,
    hold: Hold,
    hints: list[str],
    output: LogOutput,
    manager: ServiceManager,
    link: SupervisorLink | None,
) -> None:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    hold.ends_by(lambda: loop.call_soon_threadsafe(stopped.set))

    def abandoned() -> None:
        logger.error("the supervisor of this worker has ended: stopping")
        stopped.set()

    if link is not None:
        link.watch(loop, abandoned)
    try:
        last = await _serve_until(stopped, options, hints, output, manager, link)
        if link is None:
            print(last, flush=True)
        INTERRUPTION.closed()
    finally:
        hold.ends_by(None)


async def _serve_until(
    stopped: asyncio.Event,
    options: BrokerOptions,
    hints: list[str],
    output: LogOutput,
    manager: ServiceManager,
    link: SupervisorLink | None,
) -> str:
    """Run a broker; return the last line to print after a clean stop.

    `hints` are printed after the line that says that it is ready. A worker prints nothing: `link`
    leads to its supervisor, which does.
    """
    from barnabas.broker.broker import Broker

    loop = asyncio.get_running_loop()
    console = None
    if options.barnabas_console_listener is not None:
        # Imported here: a broker without one need not have it in memory.
        from barnabas.cli.console_part import BrokerConsole, console_address

        address = console_address(options)
    tree = None
    if link is not None:
        from barnabas.workers.worker import WorkerReports, tree_of

        tree = tree_of(link, options)
    broker = Broker(options, coordination=tree)
    if not await _unless(stopped, broker.start()):
        return "Barnabas was stopped before it was ready"
    output.broker_id = broker.broker_id
    if options.barnabas_console_listener is not None:
        assert address is not None
        console = BrokerConsole(broker, address)
        try:
            await console.start()
        except BaseException:
            await console.stop()
            await broker.stop()
            raise
        hints = [f"console on {console.server.url}", *hints]
    # What exists now lives as long as the broker: the collector need not scan it again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    addresses = ", ".join(str(endpoint) for endpoint in broker.endpoints)
    reports = None
    if link is not None:
        reports = WorkerReports(link, broker)
        reports.ready(None if console is None else console.server.url)
    else:
        _print_ready(broker, addresses, hints)
    lost = loop.create_task(broker.lost.wait())
    lost.add_done_callback(lambda _: stopped.set())
    end_watchdog = _notify_ready(broker, manager, f"ready on {addresses}")
    await stopped.wait()
    manager.stopping()
    if reports is not None:
        reports.end()
    if console is not None:
        await console.stop()
    await broker.stop()
    end_watchdog()
    if broker.lost.is_set():
        raise StorageError(f"the broker stopped: {broker.lost_reason}")
    if broker.logs.unclosed:
        paths = ", ".join(broker.logs.unclosed)
        raise StorageError(f"not closed cleanly: {paths} (the next start checks the logs there)")
    return "Barnabas stopped cleanly"


def _print_ready(broker: Broker, addresses: str, hints: list[str]) -> None:
    print(
        f"Barnabas broker {broker.broker_id} is ready on {addresses} "
        f"(data in {', '.join(broker.logs.paths)})",
        *hints,
        sep="\n",
        flush=True,
    )
    if broker.metrics_address is not None:
        print(metrics_line(*broker.metrics_address[:2], broker.options), flush=True)


def metrics_line(host: str, port: int, options: BrokerOptions) -> str:
    """Return the line that says where metrics are served."""
    scheme = "https" if options.barnabas_metrics_ssl_enable else "http"
    return f"metrics: {scheme}://{f'[{host}]' if ':' in host else host}:{port}/metrics"


def _notify_ready(broker: Broker, manager: ServiceManager, status: str) -> Callable[[], None]:
    """Notify the service manager, if there is one; return what ends its watchdog.

    Then SIGHUP reads changed certificates; without a manager, it is a terminal that was closed.
    """
    if not manager.is_there:
        return lambda: None
    loop = asyncio.get_running_loop()

    def reload() -> None:
        manager.reloading()
        broker.parts.housekeeping.renew_tls()
        manager.ready(status)

    loop.add_signal_handler(signal.SIGHUP, reload)
    manager.ready(status)
    return manager.keep_alive(loop)


async def _unless(stopped: asyncio.Event, start: Coroutine[object, object, None]) -> bool:
    """Start, or cancel the start when stopped; return whether the start has completed."""
    loop = asyncio.get_running_loop()
    starting, waiting = loop.create_task(start), loop.create_task(stopped.wait())
    await asyncio.wait([starting, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
    if starting.cancelled():
        return False
    starting.result()
    return True


def _keep_buffers() -> None:
    """Let malloc keep freed megabytes: returning them costs a page fault per 4 KiB next time."""
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 64 * 1024 * 1024)
        libc.mallopt(M_TRIM_THRESHOLD, 128 * 1024 * 1024)
