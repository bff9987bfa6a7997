"""What `barnabas reassign` prints: cost and progress of a plan, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from barnabas.admin.moves.plan import Cost
from barnabas.admin.moves.progress import Progress
from barnabas.cli.output import print_table, size_text
from barnabas.cli.reassign.directory_moves import DirectoryMove


def print_cost(cost: Cost) -> None:
    """Print the moves, and their totals per broker."""
    if not cost.moves:
        print("nothing to move between brokers: every partition already has the planned replicas")
        return
    print_table(
        ["partition", "now", "then", "copied to", "bytes"],
        [
            [
                str(move.partition),
                ",".join(map(str, move.before)),
                ",".join(map(str, move.after)),
                ",".join(map(str, move.adding)) or None,
                size_text(move.bytes_to_copy) if move.size_bytes is not None else None,
            ]
            for move in cost.moves
        ],
        title=f"partitions that change: {len(cost.moves)}; "
        f"to copy: {size_text(cost.bytes_to_copy)}",
    )
    print_table(
        ["broker", "receives", "sends", "drops"],
        [
            [broker, *(size_text(size) for size in (total.receives, total.sends, total.drops))]
            for broker, total in cost.brokers.items()
        ],
    )


def cost_document(cost: Cost) -> dict[str, Any]:
    """Return the same for machines."""
    return {
        "bytes_to_copy": cost.bytes_to_copy,
        "moves": [
            {
                "topic": move.partition.topic,
                "partition": move.partition.partition,
                "replicas": list(move.before),
                "target": list(move.after),
                "adding": list(move.adding),
                "removing": list(move.removing),
                "size_bytes": move.size_bytes,
            }
            for move in cost.moves
        ],
        "brokers": [
            {
                "id": broker,
                "receives_bytes": total.receives,
                "sends_bytes": total.sends,
                "drops_bytes": total.drops,
            }
            for broker, total in cost.brokers.items()
        ],
    }


def print_progress(progress: Sequence[Progress], directories: Sequence[DirectoryMove]) -> None:
    """Print the progress of each partition, and of each replica that changes its directory."""
    print_table(
        ["partition", "state", "replicas", "wanted", "copied"],
        [
            [
                str(each.partition),
                each.state,
                ",".join(map(str, each.replicas)),
                ",".join(map(str, each.target)),
                each.share_text,
            ]
            for each in progress
        ],
    )
    if directories:
        print_table(
            ["partition", "broker", "state", "directory", "wanted"],
            [
                [
                    f"{each.replica.topic}-{each.replica.partition}",
                    each.replica.broker_id,
                    each.state,
                    each.present,
                    each.wanted,
                ]
                for each in directories
            ],
        )


def progress_document(
    progress: Sequence[Progress], directories: Sequence[DirectoryMove]
) -> dict[str, Any]:
    """Return the same for machines."""
    return {
        "partitions": [
            {
                "topic": each.partition.topic,
                "partition": each.partition.partition,
                "state": each.state,
                "replicas": list(each.replicas),
                "target": list(each.target),
                "copied_bytes": each.copied_bytes,
                "total_bytes": each.total_bytes,
            }
            for each in progress
        ],
        "directories": [
            {
                "topic": each.replica.topic,
                "partition": each.replica.partition,
                "broker": each.replica.broker_id,
                "state": each.state,
                "directory": each.present,
                "target": each.wanted,
            }
            for each in directories
        ],
    }
