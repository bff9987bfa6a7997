"""Ask each partition's leader, and ask again where the answer was a passing one.

The pattern behind every admin call about partitions: group them under their leaders, send one
request to each, keep what succeeded or failed for good, and repeat for the rest with fresh
metadata.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from barnabas.client.retry import Verdict, verdict
from barnabas.client.switchboard import Switchboard
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition

Answer = TypeVar("Answer")

Ask = Callable[[int, list[TopicPartition]], Awaitable[dict[TopicPartition, Answer | RequestError]]]
"""Sends one request about some partitions to their leader, and gives the outcome for each."""


async def ask_leaders(
    board: Switchboard,
    partitions: Iterable[TopicPartition],
    ask: Ask[Answer],
    *,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, Answer | RequestError]:
    """Return an answer, or a failure that is final, for every partition.

    Raises the last passing failure if some partitions still have neither when time is up.
    """
    wanted = list(dict.fromkeys(partitions))
    topics = list(dict.fromkeys(partition.topic for partition in wanted))
    settled: dict[TopicPartition, Answer | RequestError] = {}

    async def attempt() -> None:
        missing = [partition for partition in wanted if partition not in settled]
        led, leaderless = board.cluster.by_leader(missing)
        answers = await asyncio.gather(
            *(ask(leader, group) for leader, group in led.items()), return_exceptions=True
        )
        passing: BaseException | None = None
        if leaderless:
            passing = RequestError(
                ErrorCode.LEADER_NOT_AVAILABLE, f"{leaderless[0]} has no leader now"
            )
        for answer in answers:
            if isinstance(answer, BaseException):
                passing = answer
                continue
            for partition, outcome in answer.items():
                if isinstance(outcome, RequestError) and verdict(outcome) is not Verdict.FAIL:
                    passing = outcome
                else:
                    settled[partition] = outcome
        if passing is not None:
            raise passing

    if any(board.cluster.leader(partition) is None for partition in wanted):
        await board.refresh(topics)
    await board.retrying(attempt, topics=topics, timeout_ms=timeout_ms)
    return {partition: settled[partition] for partition in wanted}


def failure_of(partition: TopicPartition, error_code: int, message: str | None) -> RequestError:
    """Return the failure of one partition, named."""
    code = ErrorCode.of(error_code)
    return RequestError(code, f"{partition}: {message or code.meaning}")


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Group partitions under their topics, as requests have them."""
    grouped: dict[str, list[int]] = {}
    for topic, partition in partitions:
        grouped.setdefault(topic, []).append(partition)
    return grouped


def settled_or_raise(
    outcomes: dict[TopicPartition, Answer | RequestError],
) -> dict[TopicPartition, Answer]:
    """Return the answers if there is no failure among them; otherwise raise the first."""
    answers: dict[TopicPartition, Answer] = {}
    for partition, outcome in outcomes.items():
        if isinstance(outcome, BarnabasError):
            raise outcome
        answers[partition] = outcome
    return answers
