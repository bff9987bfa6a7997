"""A consumer without an interface: what the blocking and the asyncio consumer share.

Two sides meet here. The *network side* runs on the loop in the background: it fetches ahead, finds
positions, stays in the group. The *user's side* takes records, seeks, pauses: it is the caller of
the consumer, one call at a time. In the blocking consumer that is another thread, so the rule is:
only the user's side changes the subscription, either in the caller's own thread (the methods of
`buffer`) or in a call on the loop that the caller waits for (everything else). The network side
only reads the subscription and puts what it found into the buffer.
"""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.retry import Backoff, Verdict, verdict
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.consumer.fetch_buffer import FetchBuffer
from barnabas.consumer.fetcher import Fetcher
from barnabas.consumer.group.assignors import strategies
from barnabas.consumer.group.callbacks import Invoke, Wake, call_directly
from barnabas.consumer.group.classic import ClassicMember
from barnabas.consumer.group.kip848 import Kip848Member
from barnabas.consumer.group.member import GroupMember
from barnabas.consumer.group.no_group import NoGroup
from barnabas.consumer.group.settings import GroupSettings
from barnabas.consumer.health import consumer_health, consumer_metrics
from barnabas.consumer.offsets import FoundOffset, Lookups
from barnabas.consumer.position_events import PositionEvent
from barnabas.consumer.positions import CommittedPositions, Positions
from barnabas.consumer.reset import ResetPolicy
from barnabas.consumer.subscription import Mode, Subscription
from barnabas.errors import KafkaTimeoutError
from barnabas.model.errors import BarnabasError, ConfigError
from barnabas.model.ids import EARLIEST, LATEST, NO_EPOCH, TopicPartition
from barnabas.model.isolation import IsolationLevel
from barnabas.model.request_errors import request_error
from barnabas.structs import OffsetAndMetadata

_GROUP_POLL_MS = 100.0
"""How often a consumer that polls continuously checks its group and its commits."""

_CLOSE_SESSIONS_MS = 1000.0
"""How long closing waits for brokers to drop fetch sessions; later they expire."""


class ConsumerCore:
    """One consumer, assembled from its parts."""

    def __init__(
        self,
        options: ConsumerOptions,
        subscription: Subscription,
        *,
        wake: Callable[[], object],
        run_on_loop: Callable[[Callable[[], object]], object] | None = None,
        invoke: Invoke = call_directly,
        random: random_module.Random | None = None,
        wall_ms: Callable[[], float],
        client_id: str | None = None,
    ) -> None:
        """Create a consumer, on the loop; nothing is sent before `start`.

        `wake` is called on the loop when a waiting poll should check again; `run_on_loop` runs a
        function on the loop from the user's side; `wall_ms` is the wall-clock time.
        """
        random = random or random_module.Random()
        self.options = options
        self.subscription = subscription
        self.client = ClusterClient.from_options(options, client_id=client_id, random=random)
        self._loop = asyncio.get_running_loop()
        self._wake_user = wake
        self._woken = asyncio.Event()
        self._group_poll_called = asyncio.Event()
        self._group_poll_requested = True
        self._group_polled_ms = float("-inf")
        self._group_poll_lock = asyncio.Lock()
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

        def schedule_fetch() -> None:
            self.fetcher.schedule()

        self.buffer = FetchBuffer(
            subscription,
            ahead_max=ahead_max,
            schedule_fetch=(
                schedule_fetch if run_on_loop is None else partial(run_on_loop, schedule_fetch)
            ),
        )
        self.lookups = Lookups(
            self.client,
            committed=options.isolation_level == IsolationLevel.READ_COMMITTED,
            backoff=backoff,
            timeout_ms=options.default_api_timeout_ms,
        )
        self._positions = Positions(
            subscription,
            self.lookups,
            deliver=self._deliver,
            schedule_fetch=schedule_fetch,
            backoff=backoff,
            wall_ms=wall_ms,
        )
        self.fetcher: Fetcher = Fetcher(
            self.client,
            subscription,
            options,
            self.buffer,
            self._positions,
            ahead_max=ahead_max,
            backoff=backoff,
            delivered=self.wake,
            refused=self._refused,
            wall_ms=wall_ms,
        )
        self.member = group_member(
            self.client,
            subscription,
            options,
            wake=self._request_group_poll,
            invoke=invoke,
            random=random,
        )
        self._committed_positions = CommittedPositions(
            subscription,
            self.member.committed if options.group_id is not None else None,
            deliver=self._deliver,
            ended=self._committed_search_ended,
        )
        self._unwatch = self.client.watch(self._look_at_cluster)
        self.client.track(self._topics, auto_create=options.allow_auto_create_topics)

    def now_ms(self) -> float:
        """Return the loop's time."""
        return self._loop.time() * 1000

    # Start and close; on the loop.

    async def start(self, timeout_ms: float) -> None:
        """Find the cluster and start the background work; raise if no broker responds in time."""
        self.client.start()
        try:
            await self.client.retrying(
                lambda: self.client.refresh(
                    self._topics(), auto_create=self.options.allow_auto_create_topics
                ),
                timeout_ms=timeout_ms,
            )
            self.client.look_for(self._topics())
            await self.member.start()
        except BaseException:
            await self.close(commit=False)
            raise

    async def begin(self) -> None:
        """Start the background work, which finds the cluster when there is one."""
        self.client.start()
        self.client.request_refresh()
        await self.member.start()

    async def close(self, *, commit: bool = True, timeout_ms: float | None = None) -> None:
        """Leave the group (committing first with auto-commit) and stop everything."""
        deadline_ms = self.now_ms() + min(_CLOSE_SESSIONS_MS, self._timeout_ms(timeout_ms))
        self.fetcher.close()
        self._unwatch()
        try:
            self._apply_last_positions()
            await self.member.close(commit=commit, timeout_ms=timeout_ms)
        finally:
            await self._committed_positions.close()
            await self._positions.close()
            await self.fetcher.sessions_closed(max(0.0, deadline_ms - self.now_ms()))
            await self.client.close()
            self.buffer.clear()
            self.subscription.interceptors.close()

    def _apply_last_positions(self) -> None:
        """Apply the positions that were found; failures are dropped, as no caller is left."""
        try:
            self.buffer.apply_positions()
        except BarnabasError:
            self.buffer.clear()

    # The user's side: everything else; on the loop.

    def needs_group_poll(self, now_ms: float) -> bool:
        """Return whether `poll_group` is due before records are taken. Cheap."""
        return (
            self._group_poll_requested
            or self.member.needs_poll
            or now_ms - self._group_polled_ms > _GROUP_POLL_MS
        )

    async def poll_group(self, timeout_ms: float, *, polled: bool = True) -> None:
        """Do the part of a poll other than taking records: group, commits, first positions.

        With `polled=False` it does not count as a poll of the user. May be cancelled: the next call
        continues.
        """
        async with self._group_poll_lock:
            try:
                await self._poll_group(timeout_ms, polled)
            except asyncio.CancelledError:
                self._group_poll_requested = True
                raise

    async def _poll_group(self, timeout_ms: float, polled: bool) -> None:
        deadline_ms = self.now_ms() + timeout_ms
        self._group_poll_requested = False
        if polled:
            self._group_polled_ms = self.now_ms()
            self.member.user_polled(self._group_polled_ms)
        if self.member.needs_poll:
            await self.member.poll(max(0.0, timeout_ms))
        self.member.maybe_auto_commit(self.now_ms())
        await self._look_for_positions(deadline_ms)

    async def _look_for_positions(self, deadline_ms: float) -> None:
        self.buffer.apply_positions()
        search = self._committed_positions.search()
        if search is not None:
            wait_s = max(0.0, deadline_ms - self.now_ms()) / 1000
            await asyncio.wait({search}, timeout=wait_s)
            self.buffer.apply_positions()
        self.fetcher.schedule()
        self._raise_failure()

    async def wait(self, timeout_ms: float) -> None:
        """Wait until something may have changed, or until the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._woken.wait()

    async def wait_for_group_poll(self) -> None:
        """Wait until the group, or new partitions, need `poll_group`."""
        while not (self._group_poll_requested or self.member.needs_poll):
            self._group_poll_called.clear()
            await self._group_poll_called.wait()

    def wake(self) -> None:
        """Wake every waiting poll."""
        self._woken.set()
        self._wake_user()

    def clear_wakes(self) -> None:
        """Forget what changed so far: the next `wait` is for later changes."""
        self._woken.clear()

    async def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """Return the offset of the next record of a partition, looking it up if needed."""
        timeout_ms = self._timeout_ms(timeout_ms)
        deadline_ms = self.now_ms() + timeout_ms
        while True:
            self.clear_wakes()
            state = self.subscription.state(partition)
            if state.position is None:
                # Not all of `poll_group`: listeners call this from inside of it.
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
            return f": topic {partition.topic!r} is not known"
        if partition.partition not in known:
            return f": topic {partition.topic!r} has {len(known)} partitions"
        return ""

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = NO_EPOCH) -> None:
        """Continue from an offset."""
        self.subscription.seek(partition, offset, leader_epoch)
        self.fetcher.schedule()

    def reset(self, partitions: Iterable[TopicPartition], policy: ResetPolicy) -> None:
        """Continue from an end of the log; its offset is looked up in the background."""
        for partition in partitions:
            self.subscription.request_reset(partition, policy)
        self.fetcher.schedule()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading these partitions until `resume`."""
        for partition in partitions:
            self.subscription.pause(partition)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions again."""
        for partition in partitions:
            self.subscription.resume(partition)
        self.fetcher.schedule()
        self.wake()

    def subscribe(
        self, topics: Iterable[str] = (), pattern: Any = None, listener: Any = None
    ) -> None:
        """Subscribe to topics or to a pattern."""
        self.subscription.subscribe(topics, pattern, listener)
        self.subscription_changed()

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions; an empty list means `unsubscribe`."""
        wanted = list(partitions)
        if not wanted:
            self.unsubscribe()
            return
        self._commit_before_change()
        self.subscription.assign(wanted)
        self.subscription_changed()

    def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        self._commit_before_change()
        self.subscription.unsubscribe()
        self.subscription_changed()

    def subscription_changed(self) -> None:
        """Notify all parts of a new subscription or assignment."""
        self.member.subscription_changed()
        self.client.request_refresh()
        self._request_group_poll()
        self.fetcher.schedule()

    def _commit_before_change(self) -> None:
        consumed = self.subscription.all_consumed()
        if self.options.group_id is not None and self.options.enable_auto_commit and consumed:
            self.member.commit_parting(consumed)

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Commit offsets, or the positions of all partitions."""
        if offsets is None:
            offsets = self.subscription.all_consumed()
        await self.member.commit(offsets, self._timeout_ms(timeout_ms))

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of the group."""
        return await self.member.committed(partitions, self._timeout_ms(timeout_ms))

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
        """Return the first offsets of logs, or the offsets after their last records."""
        asked = dict.fromkeys(partitions, EARLIEST if beginning else LATEST)
        found = await self.lookups.list_offsets(asked, self._timeout_ms(timeout_ms))
        return {partition: each.offset for partition, each in found.items()}

    async def topics(self) -> set[str]:
        """Return the topics that this client may see, except internal ones."""
        cluster = await self.client.retrying(lambda: self.client.refresh(None))
        return {
            name
            for name, topic in cluster.topics.items()
            if topic.partitions and not topic.internal
        }

    async def partitions_for_topic(self, topic: str) -> set[int]:
        """Return the partitions of a topic, asking the cluster if it is unknown."""
        if self.client.cluster.partitions_for(topic) is None:
            await self.client.retrying(lambda: self.client.refresh([topic]))
        return set(self.client.cluster.partitions_for(topic) or ())

    def lag(self, partition: TopicPartition) -> int | None:
        """Return the lag behind the last readable offset, if known."""
        committed = self.options.isolation_level == IsolationLevel.READ_COMMITTED
        return self.subscription.state(partition).lag(committed=committed)

    def metrics(self) -> dict[str, dict[str, float]]:
        """Return groups of metrics under the names that Kafka's consumers use."""
        return consumer_metrics(self, (self.now_ms() - self._started_ms) / 1000)

    def health(self) -> dict[str, Any]:
        """Return what this consumer is doing and why."""
        return consumer_health(self, self.now_ms())

    # Internals.

    def _timeout_ms(self, timeout_ms: float | None) -> float:
        return self.options.default_api_timeout_ms if timeout_ms is None else timeout_ms

    def _topics(self) -> list[str] | None:
        """Return the topics whose metadata is needed; None: all."""
        followed = self.member.topics_followed()
        if followed is None or self.subscription.mode is Mode.PATTERN:
            return None
        assigned = [partition.topic for partition in self.subscription.assigned]
        return list(dict.fromkeys([*self.subscription.topics, *assigned, *followed]))

    def _deliver(self, event: PositionEvent) -> None:
        self.buffer.deliver(event)
        self.wake()

    def _request_group_poll(self) -> None:
        self._group_poll_requested = True
        self._group_poll_called.set()
        self.wake()

    def _committed_search_ended(self, failure: BarnabasError | None) -> None:
        if failure is not None:
            self._failure = failure
        self._request_group_poll()

    def _refused(self, refusal: BarnabasError) -> None:
        """Make the next poll raise, once per attempt, that brokers reject this client."""
        if refusal is not self._refusal:
            self._refusal = self._failure = refusal
            self._request_group_poll()

    def _look_at_cluster(self) -> None:
        failure = self.client.refresh_failure
        if failure is not None and verdict(failure) is Verdict.FAIL:
            self._refused(failure)
        generation = self.client.cluster.generation
        if generation != self._generation:
            self._generation = generation
            self._look_for_refusals()
            self.member.metadata_changed()
            if self.member.needs_poll:
                self._request_group_poll()

    def _look_for_refusals(self) -> None:
        """Make the next poll raise that the cluster refuses to describe a topic."""
        for topic in self.subscription.topics:
            code = self.client.cluster.error_of(topic)
            if code and verdict(code) is Verdict.FAIL:
                self._refused(request_error(code, f"topic {topic!r}: {code.meaning}"))

    def _raise_failure(self) -> None:
        """Raise why brokers or committed offsets cannot be reached, if retrying cannot help."""
        failure, self._failure = self._failure, None
        if failure is not None and verdict(failure) is Verdict.FAIL:
            raise failure


def group_member(
    client: ClusterClient,
    subscription: Subscription,
    options: ConsumerOptions,
    *,
    wake: Wake,
    invoke: Invoke = call_directly,
    random: random_module.Random,
) -> GroupMember | NoGroup:
    """Create the member that a consumer's options describe; it does nothing before `start`."""
    if options.group_id is None:
        if options.group_instance_id is not None:
            raise ConfigError(
                f"group.instance.id={options.group_instance_id} needs a group: set group.id"
            )
        return NoGroup(
            client,
            subscription,
            invoke=invoke,
            exclude_internal_topics=options.exclude_internal_topics,
        )
    settings = GroupSettings.from_options(options)
    if options.group_protocol == "consumer":
        return Kip848Member(client, subscription, settings, invoke=invoke, wake=wake, random=random)
    if options.group_remote_assignor is not None:
        raise ConfigError(
            f"group.remote.assignor={options.group_remote_assignor} needs group.protocol=consumer; "
            "classic groups use partition.assignment.strategy"
        )
    assignors = strategies(options.partition_assignment_strategy, random.randrange)
    return ClassicMember(
        client, subscription, settings, assignors, invoke=invoke, wake=wake, random=random
    )
