"""Look for positions in the background: resets by policy, and checks against new leaders' logs.

Works on the network side: it reads the subscription, asks the leaders, and brings what it found as
news. What fails and may pass is tried again; the partition waits meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.client.retry import Backoff, Verdict, verdict
from barnabas.consumer.flow import Flow
from barnabas.consumer.news import Found, News, Refused, Truncated
from barnabas.consumer.offsets import EpochEnd, FoundOffset, Lookups
from barnabas.consumer.reset import LATEST
from barnabas.consumer.subscription import Assigned, Subscription
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition


class Positions:
    """Finds and checks positions; `look` starts what is due and does not wait."""

    def __init__(
        self,
        subscription: Subscription,
        lookups: Lookups,
        *,
        deliver: Callable[[News], None],
        stir: Callable[[], None],
        backoff: Backoff,
        wall_ms: Callable[[], float],
    ) -> None:
        """`stir` is called when a flow can go on; `wall_ms` is the time that records know."""
        self._subscription = subscription
        self._lookups = lookups
        self._deliver = deliver
        self._stir = stir
        self._backoff = backoff
        self._wall_ms = wall_ms
        # By version of the state: what is being looked for, or was found and lies on the shelf, and
        # what the user was told is not to be had.
        self._resetting: dict[Assigned, int] = {}
        self._refused: dict[Assigned, int] = {}
        self._failures = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.failure: BarnabasError | None = None

    def look(self) -> None:
        """Begin to look for the positions that are asked for and not yet looked for."""
        self._resetting = _present(self._resetting)
        self._refused = _present(self._refused)
        due = [
            (state, state.version)
            for state in self._subscription.assigned.values()
            if state.reset is not None and self._resetting.get(state) != state.version
        ]
        if due:
            self._resetting |= due
            self._begin(self._reset(due))

    def check(self, flows: list[Flow]) -> None:
        """Begin to check the offsets of flows against the logs of their leaders."""
        for flow in flows:
            flow.validating = True
        self._begin(self._validate([(flow, flow.version) for flow in flows]))

    async def close(self) -> None:
        """End what is under way."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, work: object) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reset(self, due: list[tuple[Assigned, int]]) -> None:
        states = {state.partition: (state, version) for state, version in due}
        try:
            asked = {
                state.partition: state.reset.timestamp(self._wall_ms())
                for state, version in due
                if state.reset is not None and state.version == version
            }
            found = await self._list(asked)
        except BarnabasError as failure:
            await self._reset_failed(states, failure)
            for state, version in due:
                if self._resetting.get(state) == version:
                    del self._resetting[state]
        else:
            self.failure, self._failures = None, 0
            for partition, place in found.items():
                state, version = states[partition]
                self._deliver(Found(state, version, place.offset, place.leader_epoch))
        self._stir()

    async def _list(self, asked: dict[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
        found = await self._lookups.list_offsets(asked)
        # Where no record is as young as the policy asks for, reading starts at the end.
        young = {partition: LATEST for partition, place in found.items() if place.offset < 0}
        return found | await self._lookups.list_offsets(young)

    async def _reset_failed(
        self, states: dict[TopicPartition, tuple[Assigned, int]], failure: BarnabasError
    ) -> None:
        self.failure = failure
        if verdict(failure) is Verdict.FAIL:
            for state, version in states.values():
                if self._refused.get(state) != version:
                    self._refused[state] = version
                    self._deliver(Refused(state, version, failure))
        # They are looked for again all the same: somebody may have mended it.
        self._failures += 1
        await asyncio.sleep(self._backoff.delay_ms(self._failures) / 1000)

    async def _validate(self, due: list[tuple[Flow, int]]) -> None:
        flows = {flow.partition: (flow, version) for flow, version in due}
        try:
            ends = await self._lookups.epoch_ends(
                {flow.partition: flow.epoch for flow, version in due if flow.version == version}
            )
        except BarnabasError as failure:
            for flow, version in flows.values():
                if flow.version == version:
                    flow.failure = failure
                    if verdict(failure) is Verdict.FAIL:
                        flow.halted = True
                        self._deliver(Refused(flow.state, version, failure))
        else:
            for partition, end in ends.items():
                flow, version = flows[partition]
                if flow.version == version:
                    self._judge(flow, end)
        finally:
            for flow, version in due:
                if flow.version == version:
                    flow.validating = False
            self._stir()

    def _judge(self, flow: Flow, end: EpochEnd | None) -> None:
        """Compare what was read with the leader's log."""
        assert flow.offset is not None
        if end is not None and (end.offset < flow.offset or end.leader_epoch < 0):
            flow.halted = True
            known = end.offset >= 0 and end.leader_epoch >= 0
            offset = end.offset if known else None
            self._deliver(Truncated(flow.state, flow.version, offset, end.leader_epoch))
        else:
            flow.proven()


def _present(versions: dict[Assigned, int]) -> dict[Assigned, int]:
    """Return those that are still assigned and where the user has not moved since."""
    return {
        state: version
        for state, version in versions.items()
        if state.owned and state.version == version
    }
