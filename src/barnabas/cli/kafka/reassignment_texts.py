"""What `kafka-reassign-partitions` reads and prints, whichever way it reaches the cluster."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from barnabas.admin.moves.plan import Holding, propose
from barnabas.cli.reassign.file import plan_document
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

Assignments = Mapping[TopicPartition, Sequence[int]]

EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)
VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)


def broker_list(text: str) -> list[int]:
    """Parse the brokers to move partitions to."""
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not word.isdecimal():
            raise InvalidValueError(f'--broker-list: For input string: "{word}"')
    brokers = [int(word) for word in words]
    twice = sorted({broker for broker in brokers if brokers.count(broker) > 1})
    if twice:
        raise InvalidValueError(f"Broker list contains duplicate entries: {twice}")
    return brokers


def print_proposal(
    present: Mapping[TopicPartition, Holding],
    wanted: Sequence[int],
    racks: Mapping[int, str | None],
    *,
    rack_aware: bool,
) -> None:
    """Print the present assignment, and one to the wanted brokers, of those that are alive."""
    brokers = {each: racks[each] if rack_aware else None for each in wanted if each in racks}
    if None in brokers.values() and any(brokers.values()):
        raise InvalidValueError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to "
            "make replica assignment without rack information."
        )
    width = max((len(held.replicas) for held in present.values()), default=0)
    if width > len(brokers):
        raise InvalidValueError(
            f"Replication factor: {width} larger than available brokers: {len(brokers)}."
        )
    current = {key: held.replicas for key, held in present.items()}
    print(f"Current partition replica assignment\n{as_json(current)}\n")
    print(f"Proposed partition reassignment configuration\n{as_json(propose(present, brokers))}")


def as_json(assignments: Assignments) -> str:
    """Return assignments as a plan in one line."""
    return json.dumps(plan_document(assignments), separators=(",", ":"), ensure_ascii=False)


def print_rollback(present: Assignments) -> None:
    """Print the assignment before a reassignment, to go back to."""
    print(
        f"Current partition replica assignment\n\n{as_json(present)}\n\nSave this to use as the "
        "--reassignment-json-file option during rollback"
    )


def print_started(partitions: Iterable[TopicPartition]) -> None:
    """Print what was started."""
    names = [str(key) for key in sorted(partitions)]
    print(f"Successfully started partition reassignment{plural(names)} for {','.join(names)}")


def print_states(
    current: Assignments, target: Assignments, moving: Iterable[TopicPartition]
) -> None:
    """Print how far each partition is."""
    print("Status of partition reassignment:")
    for key in sorted(target):
        if key in moving:
            print(f"Reassignment of partition {key} is still in progress.")
        elif tuple(current.get(key, ())) == tuple(target[key]):
            print(f"Reassignment of partition {key} is completed.")
        else:
            print(
                f"There is no active reassignment of partition {key}, but replica set is "
                f"{_listed(current.get(key, ()))} rather than {_listed(target[key])}."
            )


def print_clearing(brokers: Iterable[int], topics: Iterable[str]) -> None:
    """Print from where throttles are removed."""
    ids, names = [str(each) for each in sorted(brokers)], sorted(topics)
    print(f"Clearing broker-level throttles on broker{plural(ids)} {','.join(ids)}")
    print(f"Clearing topic-level throttles on topic{plural(names)} {','.join(names)}")


def plural(things: Sequence[object]) -> str:
    """Return the ending of a noun."""
    return "" if len(things) == 1 else "s"


def _listed(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas))
