"""Copies by other processes, in rounds: look who is behind, send errands, hear how they went.

Errands move all records and write all positions; the session only plans, so that a round that is
lost on the way (with its process, its host or this session) costs nothing but time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Protocol

from barnabas.mirror.copying import IDLE_MS, now_ms
from barnabas.mirror.errands import Errand, Outcome, Stretch
from barnabas.mirror.failures import Failure
from barnabas.mirror.ground import Ground
from barnabas.mirror.lanes import lane_of, shared_out
from barnabas.mirror.marks import read_marks, write_marks, write_session
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RetriableError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import request_error

ROUND_MS = 5000.0
"""How long an errand copies at most; new partitions and reports wait for its end."""

LEAVE_MS = 3 * ROUND_MS
"""How long a mirror that is stopped waits for its errands."""


class ErrandPassedError(RetriableError):
    """An errand failed, and may do better later."""


class ErrandFailedError(BarnabasError):
    """An errand failed for good."""


class Runner(Protocol):
    """Whoever runs errands, each of them in a process somewhere."""

    def capacity(self) -> int:
        """Return how many errands can be run at once."""

    async def run(self, errands: Sequence[Errand]) -> list[Outcome]:
        """Run errands; raise a RetriableError if some of them got lost."""

    def cancel(self) -> None:
        """Give up what is running, whose errands then count as lost."""


class Rounds:
    """The mover of engines whose work is shared."""

    def __init__(self, ground: Ground, runner: Runner) -> None:
        self._ground = ground
        self._runner = runner
        self._topic_ids: dict[TopicPartition, str] = {}
        self._read: dict[TopicPartition, int] = {}
        self._lag: int | None = None

    async def start(self, stack: AsyncExitStack) -> None:
        """Need nothing: errands open what they need."""

    async def assign(
        self, topic_ids: Mapping[TopicPartition, str], starts: Mapping[TopicPartition, int]
    ) -> None:
        """Copy these partitions from now on; those that are new, from their starts."""
        ground, known = self._ground, self._ground.positions.known
        self._topic_ids = dict(topic_ids)
        self._read.update(starts)
        await write_marks(ground.target, ground.route, {each: known[each] for each in starts})

    async def step(self) -> bool:
        """Run a round, if somebody is behind."""
        ends = await self._ground.source.ends(self._topic_ids)
        backlog = {
            each: end - self._read[each] for each, end in ends.items() if end > self._read[each]
        }
        self._lag = sum(backlog.values())
        short = {each: self._read[each] for each, end in ends.items() if end < self._read[each]}
        if short:
            await self._ground.source.check(short)
        if not backlog:
            await asyncio.sleep(IDLE_MS / 1000)
            return False
        await self._check_marks(backlog)
        await self._round(self._errands(backlog, ends))
        self._lag = sum(max(0, end - self._read[each]) for each, end in ends.items())
        return True

    async def position(self, partition: TopicPartition) -> int:
        """Return how far a partition was read."""
        return self._read[partition]

    def lag(self) -> int | None:
        """Return how much there is to copy; None while that is not known."""
        return self._lag

    async def _check_marks(self, partitions: Mapping[TopicPartition, int]) -> None:
        """Write marks anew that the broker has forgotten for their age."""
        ground = self._ground
        marks = await read_marks(ground.target, ground.route, partitions)
        if marks.session is None:
            await write_session(ground.route, ground.producer, ground.number)
        elif marks.session != ground.number:
            raise request_error(
                ErrorCode.PRODUCER_FENCED, f"session {marks.session} has the mirror now"
            )
        known = ground.positions.known
        lost = {each: known[each] for each in partitions if each not in marks.positions}
        await write_marks(ground.target, ground.route, lost)

    def _errands(
        self, backlog: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> list[Errand]:
        options = self._ground.options
        stretches: dict[int, list[Stretch]] = {}
        for each in backlog:
            stretch = Stretch(each, self._topic_ids[each], ends[each])
            stretches.setdefault(lane_of(each), []).append(stretch)
        return [
            Errand(
                options.source,
                options.target,
                self._ground.route,
                self._ground.number,
                {lane: tuple(stretches[lane]) for lane in lanes},
                options.commit_interval_ms,
                min(ROUND_MS, options.refresh_interval_ms),
            )
            for lanes in shared_out(backlog, self._runner.capacity())
        ]

    async def _round(self, errands: list[Errand]) -> None:
        running = asyncio.ensure_future(self._runner.run(errands))
        try:
            outcomes = await asyncio.shield(running)
        except asyncio.CancelledError:
            # What is under way ends by itself, soon and in order, and counts; what never began,
            # because nobody has room for it, does not end.
            if not (await asyncio.wait({running}, timeout=LEAVE_MS / 1000))[0]:
                self._runner.cancel()
            with suppress(BarnabasError):
                self._take(await running)
            raise
        self._take(outcomes)
        failures = [failure for outcome in outcomes for failure in outcome.failures]
        if failures:
            await self._raise(failures)

    def _take(self, outcomes: Sequence[Outcome]) -> None:
        ground = self._ground
        for outcome in outcomes:
            for text in outcome.told:
                ground.tell(text)
            ground.progress.committed(
                outcome.records, outcome.skipped, now_ms(), transactions=outcome.transactions
            )
            ground.positions.learn(outcome.committed)
            self._read.update(outcome.read)

    async def _raise(self, failures: list[Failure]) -> None:
        # A lane is fenced by whoever takes the mirror over, which shows in the marks, and by a
        # broker that has waited too long for the end of a transaction.
        if any(failure.fenced for failure in failures):
            await self._check_marks({})
        for failure in failures:
            if not failure.passing and not failure.fenced:
                raise ErrandFailedError(failure.text)
        raise ErrandPassedError(failures[0].text)
