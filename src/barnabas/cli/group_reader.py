"""`barnabas consume --group`: print records as a member of a group, and commit what was printed."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from barnabas.cli.command_config import client_options
from barnabas.cli.position import Beginning, End
from barnabas.cli.record_format import Formatter
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import InvalidValueError
from barnabas.model.ids import TopicPartition

WAIT_MS = 200
SESSION_TIMEOUT_MS = 10_000


def check(arguments: argparse.Namespace) -> None:
    """Raise for arguments that cannot be combined with --group."""
    if arguments.partition is not None:
        raise InvalidValueError(
            "--partition and --group cannot be combined: the group assigns the partitions"
        )
    if arguments.start is not None and not isinstance(arguments.start, Beginning | End):
        raise InvalidValueError(
            "with --group, --from must be beginning or end, for partitions without a committed "
            "offset; to move a group use: barnabas groups reset-offsets"
        )


async def read_in_group(
    client: ClusterClient, arguments: argparse.Namespace, formatter: Formatter
) -> None:
    """Join the group and print the records of the assigned partitions, until stopped."""
    # Imported here: the consumer is by far the largest module that a command may load.
    from barnabas.aio import AIOKafkaConsumer

    start = arguments.start or (Beginning() if arguments.exit_at_end else End())
    options: dict[str, Any] = client_options(arguments)
    consumer = AIOKafkaConsumer(
        arguments.topic,
        **options,
        group_id=arguments.group,
        auto_offset_reset="earliest" if isinstance(start, Beginning) else "latest",
        enable_auto_commit=False,
        isolation_level=f"read_{arguments.isolation}",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        request_timeout_ms=int(arguments.timeout * 1000),
    )
    async with consumer:
        left: int | None = arguments.max_messages
        out = sys.stdout.buffer
        while left != 0:
            runs = await consumer.getmany(timeout_ms=WAIT_MS, max_records=left)
            for (topic, partition), records in runs.items():
                out.write(b"".join(formatter(topic, partition, record) for record in records))
                left = None if left is None else left - len(records)
            out.flush()
            if runs:
                await consumer.commit()
            elif arguments.exit_at_end and await _at_end(consumer):
                return


async def _at_end(consumer: object) -> bool:
    """Return whether this member has read its partitions to their end."""
    from barnabas.aio import AIOKafkaConsumer

    assert isinstance(consumer, AIOKafkaConsumer)
    partitions: set[TopicPartition] = consumer.assignment()
    if not partitions:
        return False
    ends = await consumer.end_offsets(partitions)
    return all([await consumer.position(each) >= end for each, end in ends.items()])
