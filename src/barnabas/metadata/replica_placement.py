"""How many partitions and replicas a topic may have, and which brokers get the replicas.

Plain functions; the random start of an assignment is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError

PARTITIONS_MAX = 100_000
"""More partitions than this in one request are a mistake or an attack; Kafka has no limit, and
crashes.
"""


def check_counts(partitions: int, replication_factor: int, brokers: int) -> None:
    """Raise unless the partition count and the replication factor can be met."""
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise RequestError(
            ErrorCode.INVALID_PARTITIONS,
            f"{partitions} partitions: must be between 1 and {PARTITIONS_MAX}",
        )
    if replication_factor < 1:
        raise RequestError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor}: must be at least 1",
        )
    if replication_factor > brokers:
        raise RequestError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor}: must be at most {brokers}, the live brokers",
        )


def check_assignment(
    assignment: Mapping[int, Sequence[int]], brokers: Sequence[int], first_partition: int = 0
) -> None:
    """Raise unless a manual assignment is consecutive, uniform and on live brokers."""
    if not assignment:
        raise _misassigned("an assignment needs at least one partition")
    if sorted(assignment) != list(range(first_partition, first_partition + len(assignment))):
        raise _misassigned(
            f"partitions {sorted(assignment)} must be consecutive from {first_partition}"
        )
    width = len(next(iter(assignment.values())))
    for partition, replicas in assignment.items():
        if not replicas:
            raise _misassigned(f"partition {partition} has no replicas")
        if len(set(replicas)) != len(replicas):
            raise _misassigned(f"partition {partition} names a broker twice: {list(replicas)}")
        if len(replicas) != width:
            raise _misassigned(
                f"partition {partition} has {len(replicas)} replicas, others {width}"
            )
        unknown = [broker for broker in replicas if broker not in brokers]
        if unknown:
            raise _misassigned(f"partition {partition} names brokers {unknown} that are not alive")


def assign_replicas(
    brokers: Mapping[int, str | None],
    partitions: range,
    replication_factor: int,
    *,
    start: int,
    shift: int,
) -> dict[int, tuple[int, ...]]:
    """Spread replicas over brokers: leaders round robin, followers shifted after each round.

    If every broker has a rack, no rack gets a second replica of a partition while another rack has
    none, and no broker gets a second replica while another has none.
    """
    if len(brokers) > 1 and all(rack is not None for rack in brokers.values()):
        return _assign_by_rack(brokers, partitions, replication_factor, start, shift)
    ordered = sorted(brokers)
    count = len(ordered)
    assignment: dict[int, tuple[int, ...]] = {}
    for partition in partitions:
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        replicas = [ordered[first]]
        replicas += [
            ordered[(first + 1 + (shift + other) % (count - 1)) % count]
            for other in range(replication_factor - 1)
        ]
        assignment[partition] = tuple(replicas)
    return assignment


def _assign_by_rack(
    brokers: Mapping[int, str | None],
    partitions: range,
    replication_factor: int,
    start: int,
    shift: int,
) -> dict[int, tuple[int, ...]]:
    ordered = _alternating(brokers)
    racks = len(set(brokers.values()))
    count = len(ordered)
    assignment: dict[int, tuple[int, ...]] = {}
    for partition in partitions:
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        replicas = [ordered[first]]
        used = {brokers[ordered[first]]}
        turn = 0
        while len(replicas) < replication_factor:
            step = (shift * racks + turn) % (count - 1)
            broker = ordered[(first + 1 + step) % count]
            turn += 1
            rack_is_free = brokers[broker] not in used or len(used) == racks
            if rack_is_free and (broker not in replicas or len(replicas) >= count):
                replicas.append(broker)
                used.add(brokers[broker])
        assignment[partition] = tuple(replicas)
    return assignment


def _alternating(brokers: Mapping[int, str | None]) -> list[int]:
    """Return the brokers ordered so that neighbours are in different racks if possible."""
    queues: dict[str, list[int]] = {}
    for broker in sorted(brokers):
        queues.setdefault(brokers[broker] or "", []).append(broker)
    ordered: list[int] = []
    depth = 0
    while len(ordered) < len(brokers):
        for rack in sorted(queues):
            if depth < len(queues[rack]):
                ordered.append(queues[rack][depth])
        depth += 1
    return ordered


def _misassigned(reason: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
