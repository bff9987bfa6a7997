"""`barnabas reassign`: move partitions between brokers, with plan files in Kafka's format.

A plan is proposed (`generate`, `spread`) or written by hand, started (`execute`), watched
(`verify`) and, if necessary, cancelled (`cancel`). `execute` first shows what will be copied
between which brokers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from barnabas.admin.moves.plan import Cost, cost_of, propose
from barnabas.admin.moves.progress import Progress, holdings, look
from barnabas.admin.moves.spread import spread
from barnabas.admin.moves.throttles import clear_throttles, set_throttle
from barnabas.admin.reassignments import (
    Reassignment,
    alter_partition_reassignments,
    list_partition_reassignments,
)
from barnabas.admin.topics import describe_topics
from barnabas.cli.arguments import add_action, count, seconds
from barnabas.cli.output import print_json, print_table
from barnabas.cli.reassign.directory_moves import (
    DirectoryMove,
    choose_directories,
    look_at_directories,
    wanted_directories,
)
from barnabas.cli.reassign.file import (
    Target,
    plan_document,
    read_plan,
    read_topics,
    write_plan,
)
from barnabas.cli.reassign.progress_bar import progress_bar
from barnabas.cli.reassign.report import (
    cost_document,
    print_cost,
    print_progress,
    progress_document,
)
from barnabas.cli.session import run
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.ids import TopicPartition

POLL_S = 0.5
"""How often `--wait` checks the progress."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of all actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    generate = add_action(
        actions,
        "generate",
        "propose a new assignment of topics to brokers",
        _generate,
        "  barnabas reassign generate --topic orders --brokers 1,2,3 > plan.json\n"
        "  barnabas reassign generate --file topics.json --brokers 1,2 --output plan.json",
    )
    topics = generate.add_mutually_exclusive_group(required=True)
    topics.add_argument(
        "--topic", metavar="TOPIC", action="append", help="a topic; may be repeated"
    )
    topics.add_argument("--file", metavar="PATH", type=Path, help='{"topics":[{"topic":"t"}]}')
    generate.add_argument(
        "--brokers",
        metavar="ID[,...]",
        type=_broker_ids,
        help="target brokers (default: all live brokers)",
    )
    generate.add_argument("--ignore-racks", action="store_true", help="ignore the racks of brokers")
    generate.add_argument(
        "--output", metavar="PATH", type=Path, help="write the plan to this file, and show its cost"
    )
    spread_ = add_action(
        actions,
        "spread",
        "propose to even out what is there, as after brokers have joined: with few moves",
        _spread,
        "  barnabas reassign spread --output plan.json\n"
        "  barnabas reassign spread --topic orders --ignore-racks",
    )
    spread_.add_argument(
        "--topic",
        metavar="TOPIC",
        action="append",
        help="only this topic; may be repeated (default: all topics)",
    )
    spread_.add_argument("--ignore-racks", action="store_true", help="ignore the racks of brokers")
    spread_.add_argument(
        "--output", metavar="PATH", type=Path, help="write the plan to this file, and show its cost"
    )
    execute = add_action(
        actions,
        "execute",
        "show the cost of a plan, and start it",
        _execute,
        "  barnabas reassign execute plan.json --dry-run\n"
        "  barnabas reassign execute plan.json --throttle 50000000 --save before.json",
    )
    execute.add_argument("plan", metavar="PLAN", type=Path)
    execute.add_argument("--dry-run", action="store_true", help="only show the cost")
    execute.add_argument(
        "--throttle",
        metavar="BYTES",
        type=count,
        help="maximum bytes per second that a broker copies",
    )
    execute.add_argument(
        "--additional", action="store_true", help="allow while other reassignments are in progress"
    )
    execute.add_argument(
        "--save", metavar="PATH", type=Path, help="save the current assignment, for a rollback"
    )
    verify = add_action(
        actions,
        "verify",
        "show the progress of a plan; remove its throttles when it is done",
        _verify,
        "  barnabas reassign verify plan.json\n  barnabas reassign verify plan.json --wait",
    )
    verify.add_argument("plan", metavar="PLAN", type=Path)
    verify.add_argument("--wait", action="store_true", help="wait until the plan is done")
    verify.add_argument(
        "--wait-timeout", metavar="SECONDS", type=seconds, help="maximum time to wait"
    )
    verify.add_argument("--keep-throttles", action="store_true", help="do not remove throttles")
    cancel = add_action(
        actions,
        "cancel",
        "cancel reassignments in progress, and remove their throttles",
        _cancel,
        "  barnabas reassign cancel plan.json\n  barnabas reassign cancel --all",
    )
    which = cancel.add_mutually_exclusive_group(required=True)
    which.add_argument("plan", metavar="PLAN", type=Path, nargs="?")
    which.add_argument("--all", action="store_true", help="all reassignments of the cluster")
    cancel.add_argument("--keep-throttles", action="store_true", help="do not remove throttles")
    add_action(
        actions,
        "list",
        "list reassignments in progress",
        _list,
        "  barnabas reassign list\n  barnabas reassign list --json",
    )


# -- generate ---------------------------------------------------------------------------------


def _generate(arguments: argparse.Namespace) -> None:
    topics = arguments.topic or read_topics(arguments.file)
    plan, cost = run(arguments, lambda client: _propose(client, topics, arguments))
    _show(plan, cost, arguments)


def _show(
    plan: Mapping[TopicPartition, tuple[int, ...]], cost: Cost, arguments: argparse.Namespace
) -> None:
    """Print a plan, or write it to a file and print its cost."""
    if arguments.output is None:
        print_json(plan_document(plan))
        return
    write_plan(arguments.output, plan)
    if arguments.json:
        print_json(cost_document(cost))
    else:
        print(f"plan for {len(plan)} partitions: {arguments.output}")
        print_cost(cost)


async def _propose(
    client: ClusterClient, topics: Iterable[str], arguments: argparse.Namespace
) -> tuple[dict[TopicPartition, tuple[int, ...]], Cost]:
    present = await holdings(client, topics)
    known = client.cluster.brokers
    brokers = arguments.brokers or sorted(known)
    _check_brokers(client, brokers)
    width = max(len(held.replicas) for held in present.values())
    if width > len(brokers):
        raise InvalidValueError(
            f"--brokers: {width} replicas per partition need {width} brokers, not {len(brokers)}"
        )
    racks = {each: None if arguments.ignore_racks else known[each].rack for each in brokers}
    plan = propose(present, racks)
    return plan, cost_of(present, plan)


# -- spread -----------------------------------------------------------------------------------


def _spread(arguments: argparse.Namespace) -> None:
    plan, cost = run(arguments, lambda client: _even_out(client, arguments))
    if not plan and arguments.output is not None and not arguments.json:
        print("nothing to move: leaders and replicas are even")
        return
    _show(plan, cost, arguments)
    if arguments.output is not None and not arguments.json:
        print("when it is done, `barnabas elect --all` moves the leaders")


async def _even_out(
    client: ClusterClient, arguments: argparse.Namespace
) -> tuple[dict[TopicPartition, tuple[int, ...]], Cost]:
    topics = arguments.topic or [view.name for view in await describe_topics(client, None)]
    present = await holdings(client, topics) if topics else {}
    known = client.cluster.brokers
    racks = {each: None if arguments.ignore_racks else known[each].rack for each in sorted(known)}
    plan = spread(present, racks)
    return plan, cost_of(present, plan)


# -- execute ----------------------------------------------------------------------------------


def _execute(arguments: argparse.Namespace) -> int:
    plan = read_plan(arguments.plan)
    cost, before = run(arguments, lambda client: _weigh(client, plan, arguments.additional))
    if arguments.save is not None:
        write_plan(arguments.save, before)
    if not arguments.json:
        print_cost(cost)
        for replica, directory in wanted_directories(plan).items():
            name = f"{replica.topic}-{replica.partition}"
            print(f"{name} on broker {replica.broker_id} moves to {directory}")
    nothing = not cost.moves and not wanted_directories(plan)
    if arguments.dry_run or nothing:
        if arguments.json:
            print_json(cost_document(cost))
        return 0
    failures = run(arguments, lambda client: _start(client, plan, cost, arguments))
    if arguments.json:
        errors = {str(key): _error_document(error) for key, error in failures.items()}
        rollback = plan_document(before)
        print_json({**cost_document(cost), "failures": errors, "rollback": rollback})
    else:
        print(f"started: {len(plan) - len(failures)} of {len(plan)} partitions")
        if arguments.save is None:
            print(f"rollback plan: {json.dumps(plan_document(before), separators=(',', ':'))}")
    for failure in failures.values():
        print(f"barnabas reassign execute: {_text(failure)}", file=sys.stderr)
    return 1 if failures else 0


async def _weigh(
    client: ClusterClient, plan: Mapping[TopicPartition, Target], additional: bool
) -> tuple[Cost, dict[TopicPartition, tuple[int, ...]]]:
    """Check a plan against the cluster; return its cost and the current assignment."""
    present = await holdings(client, {key.topic for key in plan})
    for key in plan:
        if key not in present:
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {key} does not exist"
            )
    _check_brokers(client, {broker for target in plan.values() for broker in target.replicas})
    moving = await list_partition_reassignments(client)
    if moving and not additional:
        raise InvalidValueError(
            f"{len(moving)} partitions are already being reassigned ({_first(moving)}): "
            "wait for them, cancel them, or use --additional"
        )
    target = {key: each.replicas for key, each in plan.items()}
    return cost_of(present, target), {key: present[key].replicas for key in plan}


async def _start(
    client: ClusterClient,
    plan: Mapping[TopicPartition, Target],
    cost: Cost,
    arguments: argparse.Namespace,
) -> dict[TopicPartition, RequestError]:
    if arguments.throttle is not None:
        await set_throttle(client, cost.moves, arguments.throttle)
    answers = await alter_partition_reassignments(
        client, {key: target.replicas for key, target in plan.items()}
    )
    failures = {key: answer for key, answer in answers.items() if answer is not None}
    started = {key: target for key, target in plan.items() if key not in failures}
    refused = await choose_directories(client, wanted_directories(started), arguments.timeout)
    for replica, failure in refused.items():
        failures[TopicPartition(replica.topic, replica.partition)] = failure
    return failures


# -- verify and cancel ------------------------------------------------------------------------


def _verify(arguments: argparse.Namespace) -> int:
    plan = read_plan(arguments.plan)
    progress, directories, lifted = run(arguments, lambda client: _watch(client, plan, arguments))
    if arguments.json:
        print_json({**progress_document(progress, directories), "throttles_lifted": lifted})
    else:
        print_progress(progress, directories)
        if lifted:
            print("throttles removed")
    done = [each.is_done for each in progress] + [each.is_done for each in directories]
    return 0 if all(done) else 1


async def _watch(
    client: ClusterClient, plan: Mapping[TopicPartition, Target], arguments: argparse.Namespace
) -> tuple[list[Progress], list[DirectoryMove], bool]:
    replicas = {key: target.replicas for key, target in plan.items()}
    wanted = wanted_directories(plan)

    async def look_at_all() -> tuple[list[Progress], list[DirectoryMove], bool]:
        progress = await look(client, replicas)
        directories = await look_at_directories(client, wanted)
        moving = [each.is_moving for each in progress] + [each.is_moving for each in directories]
        return progress, directories, any(moving)

    progress, directories, moving = await look_at_all()
    if arguments.wait and moving:
        loop = asyncio.get_running_loop()
        limit = arguments.wait_timeout
        deadline = None if limit is None else loop.time() + limit
        with progress_bar() as show:
            while moving and (deadline is None or loop.time() < deadline):
                show(progress)
                await asyncio.sleep(POLL_S)
                progress, directories, moving = await look_at_all()
    lifted = False
    if not arguments.keep_throttles and not moving:
        lifted = await clear_throttles(client, {key.topic for key in plan})
    return progress, directories, lifted


def _cancel(arguments: argparse.Namespace) -> int:
    wanted = None if arguments.all else list(read_plan(arguments.plan))
    answers = run(arguments, lambda client: _take_back(client, wanted, arguments))
    failed = {key: failure for key, failure in answers.items() if failure is not None}
    if arguments.json:
        print_json(
            [
                {
                    "topic": key.topic,
                    "partition": key.partition,
                    "cancelled": failure is None,
                    **_error_document(failure),
                }
                for key, failure in answers.items()
            ]
        )
    elif not answers:
        which = "of these partitions " if wanted else ""
        print(f"no reassignment {which}is in progress")
    else:
        for key in answers:
            if key not in failed:
                print(f"cancelled: {key}")
    for failure in failed.values():
        print(f"barnabas reassign cancel: {_text(failure)}", file=sys.stderr)
    return 1 if failed else 0


async def _take_back(
    client: ClusterClient, wanted: list[TopicPartition] | None, arguments: argparse.Namespace
) -> dict[TopicPartition, RequestError | None]:
    moving = await list_partition_reassignments(client, wanted)
    if not moving:
        return {}
    answers = await alter_partition_reassignments(client, dict.fromkeys(moving))
    if not arguments.keep_throttles:
        await clear_throttles(client, {key.topic for key in moving})
    return {key: answers[key] for key in sorted(answers)}


def _list(arguments: argparse.Namespace) -> None:
    moving = run(arguments, lambda client: list_partition_reassignments(client))
    if arguments.json:
        print_json(
            [
                {
                    "topic": key.topic,
                    "partition": key.partition,
                    "replicas": moving[key].replicas,
                    "adding": moving[key].adding,
                    "removing": moving[key].removing,
                }
                for key in sorted(moving)
            ]
        )
    elif not moving:
        print("no reassignment is in progress")
    else:
        print_table(
            ["partition", "replicas", "adding", "removing"],
            [
                [str(key), *(",".join(map(str, ids)) for ids in _three(moving[key]))]
                for key in sorted(moving)
            ],
        )


def _three(moving: Reassignment) -> tuple[tuple[int, ...], ...]:
    return moving.replicas, moving.adding, moving.removing


# -- helpers ----------------------------------------------------------------------------------


def _error_document(error: RequestError | None) -> dict[str, str]:
    return {} if error is None else {"error": error.code.name, "message": str(error)}


def _text(failure: RequestError) -> str:
    return f"{failure} ({failure.code.name})"


def _first(moving: Mapping[TopicPartition, Reassignment]) -> str:
    names = [str(key) for key in sorted(moving)]
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _check_brokers(client: ClusterClient, brokers: Iterable[int]) -> None:
    missing = sorted(set(brokers) - client.cluster.brokers.keys())
    if missing:
        present = ", ".join(map(str, sorted(client.cluster.brokers)))
        raise InvalidValueError(f"broker {missing[0]} is not alive; live brokers: {present}")


def _broker_ids(text: str) -> list[int]:
    words = text.split(",")
    if not all(word.isdecimal() for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of broker ids, like 1,2,3")
    ids = list(map(int, words))
    if len(set(ids)) < len(ids):
        raise argparse.ArgumentTypeError(f"{text!r} names a broker twice")
    return ids
