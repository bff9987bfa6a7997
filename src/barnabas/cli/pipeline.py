"""`barnabas pipeline`: create, check and run a project of Spark Declarative Pipelines."""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.arguments import add_command_config, add_word
from barnabas.cli.command_config import BOOTSTRAP, bootstrap_of
from barnabas.cli.interruption import INTERRUPTION
from barnabas.cli.spark_master import LOCAL, spark_master

if TYPE_CHECKING:
    from barnabas.pipeline.engine import Engine
    from barnabas.pipeline.run import Run
    from barnabas.pipeline.sketch import Sketch
    from barnabas.pipeline.spec import Spec

INIT_EXAMPLES = """\
  barnabas pipeline init clicks
  barnabas pipeline init clicks --language sql --bootstrap kafka:9092
  barnabas pipeline init clicks --bad-records fail"""

CHECK_EXAMPLES = """\
  barnabas pipeline check clicks
  barnabas pipeline check clicks --without-spark

Without Spark, only what needs no Java is checked: the spec, options, topics and checkpoints."""

RUN_EXAMPLES = """\
  barnabas pipeline run clicks
  barnabas pipeline run clicks --continuous --master 'local[4]'
  barnabas pipeline run clicks --master spark://master:7077
  barnabas pipeline run clicks --full-refresh page_counts_topic

A run continues where the last one stopped: the checkpoints are in the spec's storage. After Ctrl-C,
the next run neither loses nor repeats records."""

REPORT_S = 1.0
PLAIN_REPORT_S = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    init = _action(actions, "init", "create a small working project", _init, INIT_EXAMPLES)
    init.add_argument(
        "--bootstrap-server",  # as Kafka's own commands call it
        "--bootstrap",
        dest="bootstrap",
        metavar="HOST:PORT[,...]",
        help="brokers of the topics (default: bootstrap.servers in --command-config, "
        f"$BARNABAS_BOOTSTRAP or {BOOTSTRAP})",
    )
    add_command_config(init, "that the definitions read ")
    init.add_argument(
        "--language",
        choices=["python", "sql"],
        default="python",
        help="language of the definitions (default: python)",
    )
    init.add_argument(
        "--bad-records",
        choices=["dead-letter", "fail"],
        default="dead-letter",
        help="send unreadable records to a dead letter topic, or fail the run "
        "(default: dead-letter)",
    )
    check = _action(
        actions,
        "check",
        "report problems of a project, without running it",
        _check,
        CHECK_EXAMPLES,
    )
    check.add_argument("--without-spark", action="store_true", help="skip Spark's dry run")
    run = _action(actions, "run", "run a project, and show its progress", _run, RUN_EXAMPLES)
    for each in (check, run):
        each.add_argument(
            "--master",
            metavar="URL",
            type=spark_master,
            default=LOCAL,
            help=f"where Spark runs: local[N] or spark://HOST:PORT (default: {LOCAL})",
        )
    how = run.add_mutually_exclusive_group()
    how.add_argument(
        "--once", action="store_true", help="read all available data, then stop (default)"
    )
    how.add_argument(
        "--continuous",
        action="store_true",
        help="keep running, with an update whenever there is new data",
    )
    refresh = run.add_mutually_exclusive_group()
    refresh.add_argument(
        "--full-refresh",
        metavar="NAME[,...]",
        type=_names,
        default=[],
        help="reset these tables and sinks, and read from the beginning",
    )
    refresh.add_argument(
        "--full-refresh-all", action="store_true", help="reset all tables and sinks"
    )
    run.add_argument("--json", action="store_true", help="print a JSON line every second")


def _action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], int | None],
    examples: str,
) -> argparse.ArgumentParser:
    parser = add_word(actions, name, summary, run, examples)
    parser.add_argument(
        "directory",
        metavar="DIR",
        nargs="?",
        type=Path,
        default=Path(),
        help="project directory (default: the current one)",
    )
    return parser


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError(f"{text!r} must name at least one table or sink")
    return names


def _init(arguments: argparse.Namespace) -> None:
    from barnabas.pipeline.templates import Project

    config = arguments.command_config
    bootstrap = bootstrap_of(arguments)
    project = Project(
        arguments.directory,
        bootstrap,
        language=arguments.language,
        bad_records=arguments.bad_records,
        client_file=None if config.path is None else Path(config.path).resolve(),
    )
    for path in project.write():
        print(f"wrote {path}")
    same_file = "" if config.path is None else f" --command-config {config.path}"
    print("\nnext:")
    for topic in project.topics:
        print(f"  barnabas topics create {topic} --bootstrap {bootstrap}{same_file}")
    print(f"  barnabas pipeline check {arguments.directory}")
    print(f"  barnabas pipeline run {arguments.directory}")


def _check(arguments: argparse.Namespace) -> int:
    spec, found, wrong = _looked_at(arguments.directory)
    if wrong:
        return _told(wrong)
    if not arguments.without_spark:
        from barnabas.pipeline.updates import update

        engine = _engine(arguments.master, spec, found)
        try:
            engine.start()
            update(engine.session, spec, lambda text: None, dry=True)
        finally:
            engine.stop()
    print(f"{spec.name}: no problems found")
    return 0


def _looked_at(directory: Path) -> tuple[Spec, Sketch, list[str]]:
    """Read a project; return it with the problems that are found before Spark runs."""
    from barnabas.pipeline.checking import check
    from barnabas.pipeline.engine import missing
    from barnabas.pipeline.errors import PipelineError
    from barnabas.pipeline.sketch import sketch
    from barnabas.pipeline.spec import read_spec

    # PySpark warns about the version of pandas whenever Connect is imported, and about lost
    # listeners when a signal to all processes has stopped Spark.
    warnings.filterwarnings("ignore", module="pyspark")
    lacking = missing()
    if lacking is not None:
        raise PipelineError(lacking)
    spec = read_spec(directory)
    found = sketch(spec)
    return spec, found, check(spec, found)


def _told(wrong: list[str]) -> int:
    for line in wrong:
        print(f"barnabas pipeline: {line}", file=sys.stderr)
    return 1


def _log(spec: Spec) -> Path:
    storage = spec.local_storage
    return (storage if storage is not None else spec.directory) / "spark.log"


def _engine(master: str, spec: Spec, found: Sketch) -> Engine:
    from barnabas.pipeline.catalog import with_catalog
    from barnabas.pipeline.engine import Engine

    return Engine(master, with_catalog(spec, found), _log(spec))


def _run(arguments: argparse.Namespace) -> int:
    from barnabas.pipeline.run import Run
    from barnabas.pipeline.updates import Refresh

    INTERRUPTION.serve()
    refresh = Refresh(arguments.full_refresh, arguments.full_refresh_all)
    recomputes = bool(refresh.names) or refresh.everything
    spec, found, wrong = _looked_at(arguments.directory)
    if recomputes:  # for checkpoints that do not match
        wrong = [line for line in wrong if "--full-refresh" not in line]
    if wrong:
        return _told(wrong)
    engine = _engine(arguments.master, spec, found)
    print(f"barnabas pipeline: {spec.name}: starting Spark on {arguments.master}", file=sys.stderr)
    try:
        engine.start()
        run = Run(engine, spec, found, continuous=arguments.continuous, refresh=refresh)
        run.start()
        try:
            _report(arguments, run)
        finally:
            with INTERRUPTION.held():
                run.stop()
                _last(arguments, run)
    finally:
        engine.stop()
    return 0


def _report(arguments: argparse.Namespace, run: Run) -> None:
    """Show progress until the run ends, and raise its failure."""
    from barnabas.cli.pipeline_view import PipelineView, plain

    told_s = time.monotonic()
    with PipelineView(wanted=not arguments.json) as view:
        while not run.wait(REPORT_S):
            flows = run.flows()
            if arguments.json:
                print(json.dumps(_document(run)), flush=True)
            elif view.is_drawn:
                view.show(flows)
            elif time.monotonic() - told_s >= PLAIN_REPORT_S:
                told_s = time.monotonic()
                for line in plain(flows):
                    print(line, flush=True)


def _last(arguments: argparse.Namespace, run: Run) -> None:
    from barnabas.cli.pipeline_view import plain

    lines = [json.dumps(_document(run) | {"done": True})] if arguments.json else plain(run.flows())
    for line in lines:
        print(line, flush=True)
        INTERRUPTION.closed()


def _document(run: Run) -> dict[str, object]:
    return {"updates": run.updates, "flows": [flow.document() for flow in run.flows()]}
