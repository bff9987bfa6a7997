"""The partitions that a command is about, checked to exist before anything is done to them."""

from __future__ import annotations

from barnabas.admin.topics import describe_topics
from barnabas.client.switchboard import Switchboard
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition


async def existing_partitions(
    board: Switchboard, topic: str, wanted: list[int] | None
) -> list[TopicPartition]:
    """Return the partitions of a topic, or those wanted; raises when one does not exist."""
    [view] = await describe_topics(board, [topic])
    if view.error is not ErrorCode.NONE:
        failure = RequestError(view.error, f"topic {topic!r}: {view.error.meaning}")
        if view.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            failure = RequestError(view.error, f"there is no topic {topic!r}")
            failure.add_note(f"create it with: barnabas topics create {topic}")
        raise failure
    missing = sorted(set(wanted or []) - set(view.partitions))
    if missing:
        raise RequestError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic!r} has partitions 0-{max(view.partitions)}, not {missing[0]}",
        )
    return [TopicPartition(topic, index) for index in sorted(wanted or view.partitions)]
