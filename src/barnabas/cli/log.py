"""`barnabas log`: show, check and repair the files of a stopped broker.

Nothing here talks to a broker. `dump` and `verify` only read; `repair` takes the lock of the data
directory, so it fails while a broker runs, and changes nothing without `--execute`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from barnabas.cli.arguments import add_word
from barnabas.cli.output import print_json
from barnabas.cli.record_format import json_bytes
from barnabas.config.topic import TopicOptions
from barnabas.log.checkpoints import read_offsets, write_offsets
from barnabas.log.directory import LOCK, LOG_STARTS, RECOVERY_POINTS, parse_name
from barnabas.log.dump import dump_file, files_to_dump
from barnabas.log.file_pool import FilePool
from barnabas.log.files import DiskFiles
from barnabas.log.inspection import (
    CHECKPOINTS,
    Flaw,
    inspect_directory,
    inspect_partition,
    is_partition,
    partitions_in,
)
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producer_snapshot import SNAPSHOT
from barnabas.model.errors import CorruptFileError, InvalidValueError
from barnabas.model.ids import TopicPartition

NO_GAP_IS_LOSS = 2**63 - 1
"""Compaction leaves gaps, and a stopped broker may not have checkpointed how far it got."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    dump = _add_action(
        actions,
        "dump",
        "show the contents of segments, indexes, snapshots and checkpoints",
        _dump,
        "  barnabas log dump data/orders-0/00000000000000000000.log --records\n"
        "  barnabas log dump data/orders-0\n"
        "  barnabas log dump data/recovery-point-offset-checkpoint --json",
    )
    dump.add_argument("--records", action="store_true", help="also show the records of each batch")
    _add_action(
        actions,
        "verify",
        "check every batch, and check indexes, snapshots and checkpoints against the batches",
        _verify,
        "  barnabas log verify data\n  barnabas log verify data/orders-0 --json",
    )
    repair = _add_action(
        actions,
        "repair",
        "recover: truncate damaged logs, and rebuild everything else from the batches",
        _repair,
        "  barnabas log repair data/orders-0              # only shows what would be done\n"
        "  barnabas log repair data/orders-0 --execute",
    )
    repair.add_argument(
        "--execute", action="store_true", help="make the changes (default: only show them)"
    )


def _add_action(
    actions: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], int],
    examples: str,
) -> argparse.ArgumentParser:
    parser = add_word(actions, name, summary, run, examples)
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="a data directory or partition directory" + (", or a file" * (name == "dump")),
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


# dump


def _dump(arguments: argparse.Namespace) -> int:
    files, failed = DiskFiles(), 0
    for given in arguments.paths:
        for path in files_to_dump(files, given.rstrip("/") or "/"):
            if not arguments.json:
                print(path)
            try:
                for entry in dump_file(files, path, records=arguments.records):
                    _print_entry(path, entry, arguments.json)
            except CorruptFileError as failure:
                failed = 1
                _print_entry(path, {"error": str(failure)}, arguments.json)
    return failed


def _print_entry(path: str, entry: dict[str, Any], as_json: bool) -> None:
    """Print a batch or an entry; its records one by one, because there may be many."""
    records = map(_printable, entry.pop("records", ()))
    if not as_json:
        print("  " + _pairs(entry))
        for record in records:
            print("    " + _pairs(record))
        return
    # One object per line: a segment may have millions of batches.
    text = json.dumps({"path": path, **entry}, ensure_ascii=False)
    print(text[:-1], end="")
    separator = ', "records": ['
    for record in records:
        print(separator + json.dumps(record, ensure_ascii=False), end="")
        separator = ", "
    print("}" if separator != ", " else "]}")


def _printable(record: dict[str, Any]) -> dict[str, Any]:
    if "error" in record:
        return record
    return {
        **record,
        "key": json_bytes(record["key"]),
        "value": json_bytes(record["value"]),
        "headers": [[name, json_bytes(value)] for name, value in record["headers"]],
    }


def _pairs(entry: dict[str, Any]) -> str:
    return " ".join(f"{name}={_shown(value)}" for name, value in entry.items())


def _shown(value: object) -> str:
    return value if isinstance(value, str) and " " not in value else json.dumps(value)


# verify


def _verify(arguments: argparse.Namespace) -> int:
    files = DiskFiles()
    flaws = [flaw for path in arguments.paths for flaw in _inspect(files, path)]
    damaged = any(flaw.damage for flaw in flaws)
    if arguments.json:
        print_json([flaw._asdict() for flaw in flaws])
    else:
        for flaw in flaws:
            _print_flaw(flaw)
        print("damaged" if damaged else "no damage found")
    return 1 if damaged else 0


def _inspect(files: DiskFiles, given: str) -> Iterator[Flaw]:
    path = _directory(files, given)
    inspect = inspect_partition if is_partition(files, path) else inspect_directory
    return inspect(files, path)


def _directory(files: DiskFiles, given: str) -> str:
    path = given.rstrip("/") or "/"
    if not files.is_dir(path):
        raise InvalidValueError(f"{path}: no such directory")
    return path


def _print_flaw(flaw: Flaw) -> None:
    kind = "damage" if flaw.damage else "notice"
    location = flaw.path if flaw.position is None else f"{flaw.path} at {flaw.position}"
    print(f"{kind}: {location}: {flaw.what} ({flaw.remedy})")


# repair


def _repair(arguments: argparse.Namespace) -> int:
    files = DiskFiles()
    outcome = []
    for given in arguments.paths:
        path = _directory(files, given)
        single = is_partition(files, path)
        data_directory = path.rpartition("/")[0] or "." if single else path
        lock = files.lock(f"{data_directory}/{LOCK}")
        try:
            flaws = list(_inspect(files, path))
            if not arguments.json:
                for flaw in flaws:
                    _print_flaw(flaw)
            if arguments.execute:
                _remove_useless(files, flaws)
                for partition in [path] if single else partitions_in(files, path):
                    outcome.append(_recover(files, data_directory, partition, arguments.json))
        finally:
            lock.release()
        if not arguments.execute:
            outcome.append({"path": path, "flaws": [flaw._asdict() for flaw in flaws]})
            if not arguments.json:
                print(
                    "nothing was changed; use --execute to repair" if flaws else "nothing to repair"
                )
    if arguments.json:
        print_json(outcome)
    return 0


def _recover(files: DiskFiles, data: str, path: str, as_json: bool) -> dict[str, Any]:
    """Open a log as after a crash, scanning all of it, and close it cleanly."""
    partition = parse_name(path.rpartition("/")[2]) or TopicPartition(path, 0)
    try:
        starts = read_offsets(files, f"{data}/{LOG_STARTS}")
    except CorruptFileError:
        starts = {}
    log = PartitionLog.open(
        FilePool(files),
        path,
        partition,
        TopicOptions.parse({}),
        now_ms := int(time.time() * 1000),
        clean=False,
        recovery_point=0,
        log_start_offset=starts.get(partition, 0),
        cleaned_offset=NO_GAP_IS_LOSS,
        repair=True,
    )
    log.close(now_ms)
    _checkpoint(files, data, partition, log.recovery_point)
    if not as_json:
        print(f"{path}: offsets {log.log_start_offset} to {log.log_end_offset}")
    return {
        "path": path,
        "log_start_offset": log.log_start_offset,
        "log_end_offset": log.log_end_offset,
    }


def _checkpoint(files: DiskFiles, data: str, partition: TopicPartition, offset: int) -> None:
    """Tell the next broker what is flushed: it then asks no more about gaps below."""
    path = f"{data}/{RECOVERY_POINTS}"
    try:
        points = read_offsets(files, path)
    except CorruptFileError:
        points = {}
    write_offsets(files, path, {**points, partition: offset})


def _remove_useless(files: DiskFiles, flaws: list[Flaw]) -> None:
    """Remove files that recovery would ignore."""
    for flaw in flaws:
        if flaw.path.endswith(SNAPSHOT) or flaw.path.rpartition("/")[2] in CHECKPOINTS:
            files.unlink(flaw.path)
