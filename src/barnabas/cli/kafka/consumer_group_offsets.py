"""What `kafka-consumer-groups` does with the offsets of groups: delete them, or reset them."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Mapping, Sequence

from barnabas.admin.failures import failure
from barnabas.admin.group_offsets import commit_offsets, delete_group_offsets, group_offsets
from barnabas.admin.groups import describe_groups
from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.admin.topics import describe_topics
from barnabas.cli.kafka.consumer_group_view import DEAD, EMPTY, print_error, row
from barnabas.cli.kafka.exceptions import message
from barnabas.cli.kafka.flags import Given, UsageError
from barnabas.cli.kafka.offset_scenarios import inside, moment_ms, offsets_since
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import LeaderNotAvailableError, UnknownTopicOrPartitionError

# -- delete-offsets


PARTIAL_FAILURES = (
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)


async def delete_offsets(client: ClusterClient, group: str, topics: Sequence[str]) -> None:
    """Delete a group's offsets for `TOPIC` or `TOPIC:0,1`, and print the outcomes."""
    partitions, unknown = await _named(client, topics)
    results: dict[TopicPartition, RequestError | None] = dict(unknown)
    failed = next(iter(unknown.values()), None)
    if partitions:
        try:
            results |= await delete_group_offsets(client, group, partitions)
            failed = next(filter(None, results.values()), None)
        except RequestError as refused:
            results |= dict.fromkeys(partitions, refused)
            failed = refused
    if failed is None:
        print(f"Request succeed for deleting offsets with topic {', '.join(topics)} group {group}")
    else:
        print_error(_deletion_failure(group, failed))
    widths = [30, 15, 15]
    print("\n" + row(["TOPIC", "PARTITION", "STATUS"], widths))
    for key in sorted(results, key=lambda key: f"{key.topic}{key.partition}"):
        error = results[key]
        status = "Successful" if error is None else f"Error: :{message(error)}"
        number = str(key.partition) if key.partition >= 0 else "Not Provided"
        print(row([key.topic, number, status], widths))


def _deletion_failure(group: str, failed: RequestError) -> str:
    if failed.code in PARTIAL_FAILURES:
        return "Encounter some partition level error, see the follow-up details:"
    texts = {
        ErrorCode.INVALID_GROUP_ID: f"'{group}' is not valid.",
        ErrorCode.GROUP_ID_NOT_FOUND: f"'{group}' does not exist.",
        ErrorCode.GROUP_AUTHORIZATION_FAILED: f"Access to '{group}' is not authorized.",
        ErrorCode.NON_EMPTY_GROUP: f"Deleting offsets of a consumer group '{group}' is forbidden "
        "if the group is not empty.",
    }
    return texts.get(failed.code, f"Encounter some unknown error: {failed.code.name}")


async def _named(
    client: ClusterClient, texts: Iterable[str]
) -> tuple[list[TopicPartition], dict[TopicPartition, RequestError]]:
    """Return the partitions of `TOPIC` and `TOPIC:0,1`, and the topics that do not exist."""
    partitions: list[TopicPartition] = []
    whole: list[str] = []
    for text in texts:
        topic, colon, numbers = text.partition(":")
        if not colon:
            whole.append(text)
            continue
        if ":" in numbers or not numbers:
            raise UsageError(f"Invalid topic arg '{text}', expected topic name and partitions")
        for number in numbers.split(","):
            if not number.isdecimal():
                raise UsageError(f"Invalid partition '{number}' specified in topic arg '{text}''")
            partitions.append(TopicPartition(topic, int(number)))
    unknown: dict[TopicPartition, RequestError] = {}
    for view in await describe_topics(client, whole) if whole else ():
        if view.error is not ErrorCode.NONE:
            unknown[TopicPartition(view.name, -1)] = failure(view.error, view.name)
        partitions += [TopicPartition(view.name, number) for number in sorted(view.partitions)]
    return list(dict.fromkeys(partitions)), unknown


# -- reset-offsets

Plan = Mapping[str, Mapping[TopicPartition, int]]
"""New offsets by group."""


async def reset(client: ClusterClient, names: Sequence[str], given: Given) -> None:
    """Print the new offsets, and commit them with `--execute`."""
    plan = _read_plan(given) if "from-file" in given else {}
    moment = moment_ms(given)
    described = await describe_groups(client, names)
    result: dict[str, Mapping[TopicPartition, int]] = {}
    for name in names:
        group = described[name]
        if isinstance(group, RequestError):
            if group.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise group
        elif group.state not in (EMPTY, DEAD):
            print_error(
                f"Assignments can only be reset if the group '{name}' is inactive, but the current "
                f"state is {group.state}."
            )
            result[name] = {}
            continue
        result[name] = await _reset_group(client, name, given, plan, moment)
    if "export" in given:
        print(_exported(result, single=len(given["group"]) == 1))
    else:
        _print_plan(result)


async def _reset_group(
    client: ClusterClient, name: str, given: Given, plan: Plan, moment: int | None
) -> dict[TopicPartition, int]:
    committed = {key: each.offset for key, each in (await group_offsets(client, name)).items()}
    partitions: list[TopicPartition] = []
    if "all-topics" in given:
        partitions = sorted(committed)
    elif "topic" in given:
        partitions, unknown = await _named(client, given["topic"])
        for error in unknown.values():
            raise error
    await _check_partitions(client, partitions or plan.get(name, ()))
    offsets = await _offsets(client, name, given, partitions, committed, plan, moment)
    if "execute" in given and "dry-run" not in given and offsets:
        for refused in filter(None, (await commit_offsets(client, name, offsets)).values()):
            raise refused
    return {key: offsets[key] for key in sorted(offsets)}


async def _check_partitions(client: ClusterClient, partitions: Iterable[TopicPartition]) -> None:
    wanted = list(partitions)
    if not wanted:
        return
    topics = sorted({key.topic for key in wanted})
    view = await client.retrying(lambda: client.refresh(topics))
    missing = [str(key) for key in wanted if view.partition(key) is None]
    if missing:
        raise UnknownTopicOrPartitionError(f'The partitions "{",".join(missing)}" do not exist')
    leaderless = [str(key) for key in wanted if view.leader(key) is None]
    if leaderless:
        raise LeaderNotAvailableError(f'The partitions "{",".join(leaderless)}" have no leader')


async def _offsets(
    client: ClusterClient,
    name: str,
    given: Given,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    plan: Plan,
    moment: int | None,
) -> dict[TopicPartition, int]:
    if moment is not None:
        return await offsets_since(client, partitions, moment, _say_empty)
    if "to-earliest" in given or "to-latest" in given:
        spec = EARLIEST if "to-earliest" in given else LATEST
        found = await list_offsets(client, dict.fromkeys(partitions, spec))
        return {key: found[key].offset for key in partitions}
    if "to-current" in given:
        fresh = [key for key in partitions if key not in committed]
        ends = await list_offsets(client, dict.fromkeys(fresh, LATEST)) if fresh else {}
        kept = {key: committed[key] for key in partitions if key in committed}
        return kept | {key: ends[key].offset for key in fresh}
    if "from-file" in given:
        if name not in plan:
            print_error(f"No reset plan for group {name} found")
            return {}
        return await inside(client, plan[name], _say_moved)
    if "to-offset" in given:
        return await inside(client, dict.fromkeys(partitions, given["to-offset"]), _say_moved)
    for key in partitions:
        if key not in committed:
            raise UsageError(
                f"Cannot shift offset for partition {key} since there is no current committed "
                "offset"
            )
    shifted = {key: committed[key] + given["shift-by"] for key in partitions}
    return await inside(client, shifted, _say_moved)


def _say_empty(key: TopicPartition) -> None:
    print(
        f"\nWarn: Partition {key.partition} from topic {key.topic} is empty. "
        "Falling back to latest known offset."
    )


def _say_moved(key: TopicPartition, what: str, offset: int) -> None:
    print(f"WARN {what} for topic partition {key}. Value will be set to {offset}.", file=sys.stderr)


def _print_plan(result: Plan) -> None:
    widths = [30, 30, 10, 15]
    lines = [row(["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"], widths)] if result else []
    for name, offsets in result.items():
        lines += [row([name, *key, offset], widths) for key, offset in offsets.items()]
    print("".join(f"\n{line}" for line in lines))


QUOTED_FROM = 25
"""Kafka's tool quotes names of this length, or with characters that CSV has a use for."""


def _exported(result: Plan, *, single: bool) -> str:
    lines = []
    for name, offsets in result.items():
        for key, offset in offsets.items():
            cells = [_quoted(key.topic), str(key.partition), str(offset)]
            lines.append(",".join(cells if single else [_quoted(name), *cells]) + "\n")
    return "".join(lines)


def _quoted(text: str) -> str:
    if len(text) < QUOTED_FROM and all(char >= "-" for char in text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _read_plan(given: Given) -> Plan:
    """Read `topic,partition,offset` of the one group, or `group,topic,partition,offset`."""
    path, groups = given["from-file"], given["group"]
    plan: dict[str, dict[TopicPartition, int]] = {}
    with open(path, newline="", encoding="utf-8") as file:
        for number, cells in enumerate(csv.reader(file), 1):
            if not cells:
                continue
            if len(cells) == 3 and len(groups) == 1:
                cells.insert(0, groups[0])
            try:
                group, topic, partition, offset = cells
                key = TopicPartition(topic, int(partition))
                plan.setdefault(group, {})[key] = int(offset)
            except ValueError as reason:
                raise InvalidValueError(
                    f"{path}, line {number}: {','.join(cells)!r} must be "
                    f"{'' if len(groups) == 1 else 'group,'}topic,partition,offset"
                ) from reason
    return plan
