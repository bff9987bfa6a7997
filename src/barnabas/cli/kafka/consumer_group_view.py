"""What `kafka-consumer-groups --describe` prints, in the columns of Kafka's tool."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

from barnabas.admin.group_offsets import CommittedOffset, group_offsets
from barnabas.admin.groups import GroupDescription, GroupMember, describe_groups
from barnabas.admin.offsets import LATEST, find_offsets
from barnabas.cli.kafka.flags import Given
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition

NONE = "-"
DEAD, EMPTY = "Dead", "Empty"
REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


def print_error(text: str) -> None:
    """Print a failure where Kafka's tool prints it: on standard output."""
    print(f"\nError: {text}")


def row(cells: Sequence[object], widths: Sequence[int]) -> str:
    """Return cells left-aligned; those without a width as they are."""
    padded = [f"{cell!s:<{width}}" for cell, width in zip(cells, widths, strict=False)]
    return " ".join([*padded, *map(str, cells[len(widths) :])])


async def describe(client: ClusterClient, names: Sequence[str], given: Given) -> None:
    """Print offsets, members or states of groups."""

    described = await describe_groups(client, names)
    for name in sorted(names):
        found = described[name]
        if isinstance(found, RequestError) and found.code is not ErrorCode.GROUP_ID_NOT_FOUND:
            raise found
        group = None if isinstance(found, RequestError) else found
        if "members" in given:
            _print_members(name, group, verbose="verbose" in given)
        elif "state" in given:
            _print_state(name, group, client)
        else:
            rows = [] if group is None else await _offset_rows(client, group)
            if _says_state(name, group, len(rows)):
                _print_offsets(name, rows)


def _says_state(name: str, group: GroupDescription | None, rows: int) -> bool:
    """Say what stands in the way; return whether there is something to print."""
    if group is None:
        print_error(f"Consumer group '{name}' does not exist.")
        return False
    if group.state == EMPTY:
        print(f"\nConsumer group '{name}' has no active members.", file=sys.stderr)
    elif group.state in REBALANCING:
        print(f"\nWarning: Consumer group '{name}' is rebalancing.", file=sys.stderr)
    return rows > 0


async def _offset_rows(client: ClusterClient, group: GroupDescription) -> list[list[str]]:
    committed = await group_offsets(client, group.name)
    members = [member for member in group.members if member.partitions]
    members.sort(key=lambda member: len(member.partitions or ()), reverse=True)
    owned = [(key, member) for member in members for key in sorted(member.partitions or ())]
    taken = {key for key, _ in owned}
    rest = [(key, None) for key in sorted(committed) if key not in taken]
    ends = await _ends(client, {key for key, _ in owned} | committed.keys())
    return [_offset_row(key, owner, committed, ends) for key, owner in (*owned, *rest)]


def _offset_row(
    key: TopicPartition,
    owner: GroupMember | None,
    committed: Mapping[TopicPartition, CommittedOffset],
    ends: Mapping[TopicPartition, int],
) -> list[str]:
    offset = committed[key].offset if key in committed else None
    end = ends.get(key)
    lag = None if offset is None or end is None else end - offset
    who = (NONE,) * 3 if owner is None else (owner.member_id, owner.host, owner.client_id)
    numbers = [NONE if each is None else str(each) for each in (offset, end, lag)]
    return [key.topic, str(key.partition), *numbers, *who]


async def _ends(
    client: ClusterClient, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Return the log end offsets, without those of partitions that have no leader."""

    wanted = list(partitions)
    view = await client.refresh(sorted({key.topic for key in wanted})) if wanted else None
    led = [key for key in wanted if view is not None and view.leader(key) is not None]
    found = await find_offsets(client, dict.fromkeys(led, LATEST)) if led else {}
    return {key: at.offset for key, at in found.items() if not isinstance(at, RequestError)}


def _print_offsets(name: str, rows: Sequence[Sequence[str]]) -> None:
    group_width = max(15, len(name))
    topic, member, host = (max([15, *(len(each[at]) for each in rows)]) for at in (0, 5, 6))
    widths = [group_width, topic, 10, 15, 15, 15, member, host]
    head = ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    head += ["CONSUMER-ID", "HOST", "CLIENT-ID"]
    lines = [row(cells, widths) for cells in (head, *([name, *each] for each in rows))]
    print("\n" + "\n".join(lines))


def _print_members(name: str, group: GroupDescription | None, *, verbose: bool) -> None:
    members = () if group is None else group.members
    shown = members if _says_state(name, group, len(members)) else ()
    head = ["CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID"]
    cells = [[m.member_id, m.instance_id or "", m.host, m.client_id] for m in shown]
    widths = [
        max([least, *map(len, column)])
        for least, *column in zip((15, 17, 15, 15), *cells, strict=True)
    ]
    kept = [at for at in range(4) if at != 1 or any(each[1] for each in cells)]
    columns = [max(15, len(name) if shown else 0), *(widths[at] for at in kept), 15]

    def line(first: str, middle: Sequence[str], count: str, last: str) -> str:
        text = row([first, *(middle[at] for at in kept), count], columns) + " "
        return text + last if verbose else text

    print("\n" + line("GROUP", head, "#PARTITIONS", "ASSIGNMENT"))
    for member, middle in zip(shown, cells, strict=True):
        count = str(len(member.partitions or ()))
        print(line(name, middle, count, _assignment(member.partitions or ())))


def _assignment(partitions: Iterable[TopicPartition]) -> str:
    topics: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        topics.setdefault(topic, []).append(number)
    texts = [f"{topic}({','.join(map(str, numbers))})" for topic, numbers in topics.items()]
    return ", ".join(texts) or NONE


def _print_state(name: str, group: GroupDescription | None, client: ClusterClient) -> None:
    if not _says_state(name, group, 1) or group is None:
        return
    broker = client.cluster.brokers.get(group.coordinator_id)
    address = f"{broker.host}:{broker.port}" if broker is not None else NONE
    coordinator = f"{address}  ({group.coordinator_id})"
    # Kafka's tool gives the first column the width of the second one's content.
    widths = [max(25, len(coordinator)), 25, 20, 15]
    head = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    cells = [name, coordinator, group.assignor, group.state, len(group.members)]
    print("\n" + row(head, widths) + "\n" + row(cells, widths))
