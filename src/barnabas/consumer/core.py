"""A consumer, without a face: what the plain and the asyncio consumer share.

Two sides meet here. The *network side* runs on the loop by itself: it fetches ahead, looks for
positions, keeps the place in the group. The *user's side* takes records, moves, pauses: it is
whoever calls the consumer, one call at a time. In the plain consumer that is another thread, so the
rule is: only the user's side changes the subscription, and it is either the caller's own thread
(`collect`, `take`, `fill`) or a call on the loop for which the caller waits (everything else). The
network side only reads the subscription and leaves what it found on the shelf.

`wake` is called on the loop when a poll that waits should look again; `reach` runs a function on
the loop from the user's side. Made, started and closed on the loop.
"""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.retry import Backoff, Verdict, verdict
from barnabas.config.clients.consumer import READ_COMMITTED, ConsumerOptions
from barnabas.consumer.fetcher import Fetcher
from barnabas.consumer.group.callbacks import call_directly
from barnabas.consumer.group.contract import Invoke, Membership
from barnabas.consumer.group.membership import membership
from barnabas.consumer.health import consumer_health
from barnabas.consumer.news import Found, Missing
from barnabas.consumer.offsets import FoundOffset, Lookups
from barnabas.consumer.positions import Positions
from barnabas.consumer.reset import EARLIEST, LATEST, ResetPolicy
from barnabas.consumer.shelf import Run, Shelf
from barnabas.consumer.subscription import Mode, Subscription
from barnabas.errors import KafkaTimeoutError
from barnabas.kernels import ColumnStore, ConsumerRecord
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import request_error
from barnabas.structs import OffsetAndMetadata

_ATTEND_MS = 100.0
"""How often a consumer that polls all the time attends to its group and its commits."""

_PARTING_MS = 1000.0
"""How long the end waits for brokers to hear of it: they forget by themselves, if later."""


class ConsumerCore:
    """The parts of one consumer, put together."""

    def __init__(
        self,
        options: ConsumerOptions,
        subscription: Subscription,
        *,
        wake: Callable[[], object],
        reach: Callable[[Callable[[], object]], object] | None = None,
        invoke: Invoke = call_directly,
        random: random_module.Random | None = None,
        wall_ms: Callable[[], float],
        client_id: str | None = None,
    ) -> None:
        """Make a consumer; nothing is sent before `start`. `wall_ms` is the time of day."""
        random = random or random_module.Random()
        self.options = options
        self.subscription = subscription
        self.client = ClusterClient.from_options(options, client_id=client_id, random=random)
        self._loop = asyncio.get_running_loop()
        self._tell_user = wake
        self._woken = asyncio.Event()
        self._calling = asyncio.Event()
        self._attention = True
        self._attended_ms = float("-inf")
        self._attending = asyncio.Lock()
        self._finding: asyncio.Task[None] | None = None
        self._failure: BarnabasError | None = None
        self._refusal: BarnabasError | None = None
        self._generation = -1
        self._started_ms = self.now_ms()
        backoff = Backoff(
            random.random,
            initial_ms=options.retry_backoff_ms,
            max_ms=max(options.retry_backoff_ms, options.retry_backoff_max_ms),
        )
        ahead_max = max(1, 2 * options.max_partition_fetch_bytes)
        stir = (
            (lambda: self.fetcher.stir()) if reach is None else (lambda: reach(self.fetcher.stir))
        )
        self.shelf = Shelf(subscription, ahead_max=ahead_max, stir=stir)
        self.lookups = Lookups(
            self.client,
            committed=options.isolation_level == READ_COMMITTED,
            backoff=backoff,
            timeout_ms=options.default_api_timeout_ms,
        )
        self._positions = Positions(
            subscription,
            self.lookups,
            deliver=self._deliver,
            stir=self._stir,
            backoff=backoff,
            wall_ms=wall_ms,
        )
        self.fetcher: Fetcher = Fetcher(
            self.client,
            subscription,
            options,
            self.shelf,
            self._positions,
            ahead_max=ahead_max,
            backoff=backoff,
            delivered=self._wake,
            refused=self._refused,
            wall_ms=wall_ms,
        )
        self.membership: Membership = membership(
            self.client,
            subscription,
            options,
            wake=self._call_attention,
            invoke=invoke,
            random=random,
        )
        self._unwatch = self.client.watch(self._look_at_cluster)
        self.client.track(self._topics, auto_create=options.allow_auto_create_topics)

    def now_ms(self) -> float:
        """Return the loop's time."""
        return self._loop.time() * 1000

    # From start to end; on the loop.

    async def start(self, timeout_ms: float) -> None:
        """Find the cluster, and begin what runs by itself; raise if no broker answers in time."""
        self.client.start()
        try:
            await self.client.retrying(
                lambda: self.client.refresh(
                    self._topics(), auto_create=self.options.allow_auto_create_topics
                ),
                timeout_ms=timeout_ms,
            )
            self.client.look_for(self._topics())
            await self.membership.start()
        except BaseException:
            await self.close(commit=False)
            raise

    async def close(self, *, commit: bool = True, timeout_ms: float | None = None) -> None:
        """Leave the group (committing first with auto-commit) and end everything."""
        deadline_ms = self.now_ms() + min(_PARTING_MS, self._timeout_ms(timeout_ms))
        self.fetcher.close()
        self._unwatch()
        try:
            self._settle_quietly()
            await self.membership.close(commit=commit, timeout_ms=timeout_ms)
        finally:
            if self._finding is not None:
                self._finding.cancel()
                await asyncio.gather(self._finding, return_exceptions=True)
            await self._positions.close()
            await self.fetcher.parted(max(0.0, deadline_ms - self.now_ms()))
            await self.client.close()
            self.shelf.clear()
            self.subscription.interceptors.close()

    def _settle_quietly(self) -> None:
        """Let positions that were found count; what else there is, nobody will hear any more."""
        try:
            self.shelf.settle()
        except BarnabasError:
            self.shelf.clear()

    # The user's side: taking what was fetched.

    def needs_attention(self, now_ms: float) -> bool:
        """Tell whether `attend` is due before records are taken. Cheap."""
        return (
            self._attention
            or self.membership.needs_attention
            or now_ms - self._attended_ms > _ATTEND_MS
        )

    def collect(
        self, count: int, only: Container[TopicPartition] | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Take what is there, at most `count` records, and move past it.

        Raises what the user must know, but only when there is nothing to give.
        """
        interceptors = self.subscription.interceptors
        found: dict[TopicPartition, list[ConsumerRecord]] = {}
        seen: dict[TopicPartition, list[ConsumerRecord]] = {}  # by interceptors, before
        while count > 0:
            try:
                run = self.shelf.take(count, only)
            except Exception:
                if found or seen:
                    break  # it stays on the shelf, and is raised next time
                raise
            if run is None:
                break
            run.finish()
            count -= len(run.records)
            partition = run.state.partition
            into = seen if interceptors and run.is_leftover else found
            known = into.get(partition)
            if known is None:
                into[partition] = run.records
            else:
                known += run.records
            if run.is_part:
                break
        if found and interceptors:
            found = interceptors.on_consume(found)
        for partition, records in seen.items():
            found[partition] = records + found.get(partition, [])
        return found

    def take(self, count: int, only: Container[TopicPartition] | None = None) -> Run | None:
        """Take records of one partition; the caller moves past them, one by one."""
        interceptors = self.subscription.interceptors
        while (run := self.shelf.take(count, only)) is not None:
            if not interceptors or run.is_leftover:
                break
            partition = run.state.partition
            shown = interceptors.on_consume({partition: run.records}).get(partition)
            if shown:
                return run._replace(records=shown)
            run.finish()  # interceptors have dropped all of them
        return run

    def give_back(self, run: Run, taken: int) -> None:
        """Put back the records of a run that were not given to the user, after the first few."""
        self.shelf.give_back(run, taken)

    def fill(self, store: ColumnStore, count: int) -> int:
        """Append what is there to columns, and move past it."""
        return self.shelf.fill(store, count)

    # The user's side: everything else; on the loop.

    async def attend(self, timeout_ms: float, *, polled: bool = True) -> None:
        """Do what a poll does beside taking records: group, commits, first positions.

        With `polled=False` it does not count as a poll of the user. May be cancelled: the next one
        goes on.
        """
        async with self._attending:
            try:
                await self._attend(timeout_ms, polled)
            except asyncio.CancelledError:
                self._attention = True
                raise

    async def _attend(self, timeout_ms: float, polled: bool) -> None:
        deadline_ms = self.now_ms() + timeout_ms
        self._attention = False
        if polled:
            self._attended_ms = self.now_ms()
            self.membership.note_poll(self._attended_ms)
        if self.membership.needs_attention:
            await self.membership.ensure_active(max(0.0, timeout_ms))
        self.membership.maybe_auto_commit(self.now_ms())
        await self._look_for_positions(deadline_ms)

    async def _look_for_positions(self, deadline_ms: float) -> None:
        self.shelf.settle()
        self._find_positions()
        finding = self._finding
        if finding is not None:
            wait_s = max(0.0, deadline_ms - self.now_ms()) / 1000
            await asyncio.wait({finding}, timeout=wait_s)
            self.shelf.settle()
        self.fetcher.stir()
        self._raise_failure()

    async def wait(self, timeout_ms: float) -> None:
        """Wait until something may have changed, or until the time is up."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def called(self) -> None:
        """Wait until the group, or new partitions, ask for `attend`."""
        while not (self._attention or self.membership.needs_attention):
            self._calling.clear()
            await self._calling.wait()

    def alarm(self) -> None:
        """Make everyone who waits look again."""
        self._wake()

    def listen(self) -> None:
        """Forget what changed so far: the next `wait` is for later changes."""
        self._woken.clear()

    async def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """Return the offset of the next record of a partition, looking for it if need be."""
        timeout_ms = self._timeout_ms(timeout_ms)
        deadline_ms = self.now_ms() + timeout_ms
        while True:
            self.listen()
            state = self.subscription.state(partition)
            if state.position is None:
                # Not all of `attend`: listeners ask for positions from inside of it.
                await self._look_for_positions(deadline_ms)
                state = self.subscription.state(partition)
            if state.position is not None:
                return state.position
            left_ms = deadline_ms - self.now_ms()
            if left_ms <= 0:
                raise KafkaTimeoutError(
                    f"{partition} has no position after {timeout_ms:g} ms"
                    + self._why_no_position(partition)
                )
            await self.wait(min(left_ms, 1000))

    def _why_no_position(self, partition: TopicPartition) -> str:
        failure = self._positions.failure
        if failure is not None:
            return f": {failure}"
        known = self.client.cluster.partitions_for(partition.topic)
        if known is None:
            return f": no topic {partition.topic!r} is known"
        if partition.partition not in known:
            return f": topic {partition.topic!r} has {len(known)} partitions"
        return ""

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        """Go on from an offset."""
        self.subscription.seek(partition, offset, leader_epoch)
        self.fetcher.stir()

    def reset(self, partitions: Iterable[TopicPartition], policy: ResetPolicy) -> None:
        """Go on from an end of the log; it is looked for in the background."""
        for partition in partitions:
            self.subscription.request_reset(partition, policy)
        self.fetcher.stir()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Read no more of these for now."""
        for partition in partitions:
            self.subscription.pause(partition)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these again."""
        for partition in partitions:
            self.subscription.resume(partition)
        self.fetcher.stir()
        self._wake()

    def subscribe(
        self, topics: Iterable[str] = (), pattern: Any = None, listener: Any = None
    ) -> None:
        """Subscribe to topics or to a pattern."""
        self.subscription.subscribe(topics, pattern, listener)
        self.subscription_changed()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions; none at all is `unsubscribe`."""
        wanted = list(partitions)
        if not wanted:
            self.unsubscribe()
            return
        self._commit_before_change()
        self.subscription.assign(wanted)
        self.subscription_changed()

    def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group."""
        self._commit_before_change()
        self.subscription.unsubscribe()
        self.subscription_changed()

    def subscription_changed(self) -> None:
        """Tell all parts of a new subscription or assignment."""
        self.membership.subscription_changed()
        self.client.request_refresh()
        self._call_attention()
        self.fetcher.stir()

    def _commit_before_change(self) -> None:
        consumed = self.subscription.all_consumed()
        if self.options.group_id is not None and self.options.enable_auto_commit and consumed:
            self.membership.commit_parting(consumed)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets, or the positions of all partitions."""
        if offsets is None:
            offsets = self.subscription.all_consumed()
        await self.membership.commit(offsets, self._timeout_ms(timeout_ms))

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return what the group has committed."""
        return await self.membership.committed(partitions, self._timeout_ms(timeout_ms))

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, FoundOffset]:
        """Find the first offsets at or after timestamps."""
        return await self.lookups.list_offsets(timestamps, self._timeout_ms(timeout_ms))

    async def ends(
        self,
        partitions: Iterable[TopicPartition],
        *,
        beginning: bool,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, int]:
        """Return the first offsets of logs, or those after the last records."""
        asked = dict.fromkeys(partitions, EARLIEST if beginning else LATEST)
        found = await self.lookups.list_offsets(asked, self._timeout_ms(timeout_ms))
        return {partition: place.offset for partition, place in found.items()}

    async def topics(self) -> set[str]:
        """Return the topics that this client may see, without internal ones."""
        cluster = await self.client.retrying(lambda: self.client.refresh(None))
        return {
            name
            for name, topic in cluster.topics.items()
            if topic.partitions and not topic.internal
        }

    async def partitions_for_topic(self, topic: str) -> set[int]:
        """Return the partitions of a topic, asking the cluster if it is not known."""
        if self.client.cluster.partitions_for(topic) is None:
            await self.client.retrying(lambda: self.client.refresh([topic]))
        return set(self.client.cluster.partitions_for(topic) or ())

    def lag(self, partition: TopicPartition) -> int | None:
        """Return how many offsets the user is behind the end that it can read, if known."""
        state = self.subscription.state(partition)
        end = state.high_watermark
        if self.options.isolation_level == READ_COMMITTED:
            end = state.last_stable_offset
        if end is None or end < 0 or state.position is None:
            return None
        return max(0, end - state.position)

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return groups of metrics under the names that Kafka's consumers use."""
        prefix = self.options.metric_group_prefix
        elapsed_s = (self.now_ms() - self._started_ms) / 1000
        fetching = self.fetcher.counts.metrics(self.shelf.records, elapsed_s)
        assigned = self.subscription.assigned
        lags = [lag for each in assigned if (lag := self.lag(each)) is not None]
        fetching["records-lag-max"] = max(lags, default=0)
        return {
            **self.client.metrics(prefix),
            f"{prefix}-fetch-manager-metrics": fetching,
            f"{prefix}-coordinator-metrics": {"assigned-partitions": len(assigned)},
        }

    def health(self) -> dict[str, Any]:
        """Return what this consumer is doing and why."""
        return consumer_health(self, self.now_ms())

    # Inside.

    def _timeout_ms(self, timeout_ms: float | None) -> float:
        return self.options.default_api_timeout_ms if timeout_ms is None else timeout_ms

    def _topics(self) -> list[str] | None:
        """Return the topics to know about; None: all."""
        followed = self.membership.topics_followed()
        if followed is None or self.subscription.mode is Mode.PATTERN:
            return None
        assigned = [partition.topic for partition in self.subscription.assigned]
        return list(dict.fromkeys([*self.subscription.topics, *assigned, *followed]))

    def _stir(self) -> None:
        self.fetcher.stir()

    def _deliver(self, news: Any) -> None:
        self.shelf.deliver(news)
        self._wake()

    def _wake(self) -> None:
        self._woken.set()
        self._tell_user()

    def _call_attention(self) -> None:
        self._attention = True
        self._calling.set()
        self._wake()

    def _refused(self, refusal: BarnabasError) -> None:
        """Let the user hear, once for each attempt, that brokers do not let this client in."""
        if refusal is not self._refusal:
            self._refusal = self._failure = refusal
            self._call_attention()

    def _look_at_cluster(self) -> None:
        failure = self.client.refresh_failure
        if failure is not None and verdict(failure) is Verdict.FAIL:
            self._refused(failure)
        generation = self.client.cluster.generation
        if generation != self._generation:
            self._generation = generation
            self._look_for_refusals()
            self.membership.metadata_changed()
            if self.membership.needs_attention:
                self._call_attention()

    def _look_for_refusals(self) -> None:
        """Let the user hear of a topic that the cluster refuses to tell of."""
        for topic in self.subscription.topics:
            code = self.client.cluster.error_of(topic)
            if code and verdict(code) is Verdict.FAIL:
                self._refused(request_error(code, f"topic {topic!r}: {code.meaning}"))

    def _find_positions(self) -> None:
        """Begin to find the positions of new partitions: committed ones, else by policy."""
        missing = self.subscription.missing_positions()
        if not missing or self._finding is not None:
            return
        if self.options.group_id is None:
            for partition in missing:
                self.subscription.request_reset(partition)
            return
        self._finding = self._loop.create_task(self._find_committed(missing))
        self._finding.add_done_callback(self._found_committed)

    async def _find_committed(self, partitions: list[TopicPartition]) -> None:
        states = [self.subscription.state(partition) for partition in partitions]
        versions = [state.version for state in states]
        committed = await self.membership.committed(partitions)
        for state, version in zip(states, versions, strict=True):
            found = committed.get(state.partition)
            if found is None or found.offset < 0:
                self._deliver(Missing(state, version))
            else:
                state.committed = found
                self._deliver(Found(state, version, found.offset, found.leader_epoch))

    def _found_committed(self, task: asyncio.Task[None]) -> None:
        self._finding = None
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, BarnabasError):
            self._failure = failure
        elif failure is not None:
            raise failure
        self._call_attention()

    def _raise_failure(self) -> None:
        """Raise why brokers or committed offsets are not to be had, if no attempt can mend it."""
        failure, self._failure = self._failure, None
        if failure is not None and verdict(failure) is Verdict.FAIL:
            raise failure
