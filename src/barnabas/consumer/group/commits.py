"""Committing offsets and reading committed ones, through the group's coordinator.

All commits of a consumer, awaited or not, are sent one after the other in the order of the calls:
an offset committed later is never overwritten by an earlier one, retries included. Commits that
wait behind one in flight are sent together in one request.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from barnabas.client.connection import Connection
from barnabas.client.errors import CommitFailedError, KafkaTimeoutError, NetworkError
from barnabas.client.retry import Backoff
from barnabas.consumer.group.callbacks import CommitCallback, Invoke, Offsets, Wake, unbroken
from barnabas.consumer.group.coordinator import Coordinator
from barnabas.consumer.group.counts import GroupCounts
from barnabas.consumer.group.error_actions import (
    COMMIT,
    FETCH,
    ErrorAction,
    Table,
    action_for,
    commit_failure,
    refusal,
)
from barnabas.consumer.group.requests import (
    EPOCH_VERSION,
    VERSION_MAX,
    VERSION_MIN,
    Identity,
    commit_errors,
    commit_request,
    fetch_request,
    fetched,
)
from barnabas.consumer.group.settings import GroupSettings
from barnabas.consumer.subscription import Subscription
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import TopicAuthorizationFailedError, request_error
from barnabas.structs import OffsetAndMetadata
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.schema import Message

if TYPE_CHECKING:  # an import cycle: it has a `Commits`
    from barnabas.consumer.group.member import GroupMember

_log = logging.getLogger(__name__)

Result = TypeVar("Result")


@dataclass(slots=True, eq=False)
class _Commit:
    """A pending commit."""

    offsets: Offsets
    deadline: float
    done: asyncio.Future[None]
    sender: Identity | None
    """The committing member; None: the current member at the time of sending."""


class Commits:
    """The offsets of one consumer in its group."""

    def __init__(
        self,
        coordinator: Coordinator,
        settings: GroupSettings,
        subscription: Subscription,
        member: GroupMember,
        backoff: Backoff,
        counts: GroupCounts,
        *,
        invoke: Invoke,
        wake: Wake,
    ) -> None:
        self.committed_count = 0
        self.failed_count = 0
        self._coordinator = coordinator
        self._settings = settings
        self._subscription = subscription
        self._member = member
        self._backoff = backoff
        self._counts = counts
        self._invoke = invoke
        self._wake = wake
        self._queue: deque[_Commit] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._callbacks: deque[tuple[CommitCallback | None, Offsets, Exception | None]] = deque()
        self._auto_due_ms: float | None = None
        self._auto_under_way = False

    # -- committing

    async def commit(self, offsets: Offsets, timeout_ms: float | None = None) -> None:
        """Commit and wait for the result."""
        if not offsets:
            return
        limit_ms = self._settings.default_timeout_ms if timeout_ms is None else timeout_ms
        await asyncio.shield(self._enqueue(offsets, limit_ms))
        if self._subscription.interceptors:
            await self._invoke(self._subscription.interceptors.on_commit, offsets)

    def commit_soon(
        self,
        offsets: Offsets,
        callback: CommitCallback | None = None,
        sender: Identity | None = None,
    ) -> None:
        """Commit; the callback is run by `run_callbacks`."""
        callback = callback or self._settings.commit_callback
        done = self._enqueue(dict(offsets), self._settings.default_timeout_ms, sender)

        def note(done: asyncio.Future[None]) -> None:
            failure = None if done.cancelled() else done.exception()
            assert failure is None or isinstance(failure, Exception)
            if callback is None and failure is not None:
                _log.warning("offsets %s were not committed: %s", _shown(offsets), failure)
            self._callbacks.append((callback, offsets, failure))
            self._wake()

        done.add_done_callback(note)

    @property
    def has_callbacks(self) -> bool:
        """Return whether callbacks wait to be run."""
        return bool(self._callbacks)

    @property
    def pending(self) -> int:
        """Return how many commits are pending, including the one in flight."""
        return len(self._queue) + (self._worker is not None)

    async def run_callbacks(self) -> None:
        """Run the callbacks of completed commits."""
        while self._callbacks:
            await unbroken(self._run_callback(*self._callbacks.popleft()))

    async def _run_callback(
        self, callback: CommitCallback | None, offsets: Offsets, failure: Exception | None
    ) -> None:
        if failure is None and self._subscription.interceptors:
            await self._invoke(self._subscription.interceptors.on_commit, offsets)
        if callback is not None:
            await self._invoke(callback, offsets, failure)

    async def settle(self) -> None:
        """Wait until no commit is in flight."""
        if self._worker is not None:
            await asyncio.shield(self._worker)

    async def close(self) -> None:
        """Stop; pending commits fail."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        while self._queue:
            self._end(self._queue.popleft(), CommitFailedError("the consumer was closed"))

    # -- auto-commit

    def maybe_auto_commit(self, now_ms: float) -> None:
        """Commit consumed offsets if auto-commit is on and its interval has passed."""
        interval_ms = self._settings.auto_commit_interval_ms
        if interval_ms is None or self._auto_under_way:
            return
        if self._auto_due_ms is None:
            self._auto_due_ms = now_ms + interval_ms
        if now_ms < self._auto_due_ms:
            return
        self._auto_due_ms = now_ms + interval_ms
        offsets = self._subscription.all_consumed()
        if offsets:
            self._auto_under_way = True
            done = self._enqueue(offsets, self._settings.default_timeout_ms)
            done.add_done_callback(lambda done: self._auto_committed(offsets, done))

    def _auto_committed(self, offsets: Offsets, done: asyncio.Future[None]) -> None:
        self._auto_under_way = False
        failure = None if done.cancelled() else done.exception()
        if failure is not None:
            _log.warning("auto-commit of %s failed and is retried: %s", _shown(offsets), failure)
        callback = self._settings.commit_callback
        if callback is not None or (failure is None and self._subscription.interceptors):
            assert failure is None or isinstance(failure, Exception)
            self._callbacks.append((callback, offsets, failure))
            self._wake()

    def restart_interval(self, now_ms: float) -> None:
        """Restart the interval: a rebalance has just set the positions."""
        if self._settings.auto_commit_interval_ms is not None:
            self._auto_due_ms = now_ms + self._settings.auto_commit_interval_ms

    async def auto_commit_now(self, occasion: str, timeout_ms: float) -> None:
        """Commit consumed offsets before partitions are given up, if auto-commit is on."""
        if self._settings.auto_commit_interval_ms is None:
            return
        try:
            await self.commit(self._subscription.all_consumed(), timeout_ms)
        except BarnabasError as failure:
            _log.warning(
                "group %r: offsets were not committed %s, so records may be read twice: %s",
                self._settings.group_id,
                occasion,
                failure,
            )

    # -- reading

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of the partitions that have one."""
        wanted = list(dict.fromkeys(partitions))
        if not wanted:
            return {}
        limit_ms = self._settings.default_timeout_ms if timeout_ms is None else timeout_ms

        async def ask(
            connection: Connection,
        ) -> dict[TopicPartition, OffsetAndMetadata] | ErrorCode:
            reader = self._member.reader()
            version = _version(connection, OffsetFetchRequest, reader)
            request = fetch_request(reader, wanted, self._settings.require_stable, version)
            answer = fetched(await connection.send(request, version=version), version)
            errors = [answer.error, *answer.errors.values()]
            return self._passing(FETCH, errors, reader) or dict(answer.offsets)

        what = f"reading committed offsets of group {self._settings.group_id!r}"
        return await self._persist(ask, asyncio.get_running_loop().time() + limit_ms / 1000, what)

    # -- internals

    def _enqueue(
        self, offsets: Offsets, timeout_ms: float, sender: Identity | None = None
    ) -> asyncio.Future[None]:
        _check(offsets)
        loop = asyncio.get_running_loop()
        commit = _Commit(offsets, loop.time() + timeout_ms / 1000, loop.create_future(), sender)
        # If a commit is not awaited, only our own callbacks look at its failure.
        commit.done.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._queue.append(commit)
        if self._worker is None:
            self._worker = loop.create_task(self._work(), name="commits")
        return commit.done

    async def _work(self) -> None:
        batch: list[_Commit] = []
        try:
            while self._queue:
                batch = list(self._queue)
                self._queue.clear()
                await self._send(batch)
        except BaseException as failure:
            closed = not isinstance(failure, Exception)
            reason = CommitFailedError("the consumer was closed") if closed else failure
            for commit in batch:
                self._end(commit, reason)  # completed ones stay as they are
            raise
        finally:
            self._worker = None

    async def _send(self, batch: list[_Commit]) -> None:
        """Send commits as one; if that fails, each separately, so that none fails for another."""
        sender = batch[0].sender
        if len(batch) > 1 and all(commit.sender == sender for commit in batch):
            together = {
                partition: wanted for each in batch for partition, wanted in each.offsets.items()
            }
            try:
                await self._send_one(together, min(commit.deadline for commit in batch), sender)
            except BarnabasError:
                pass  # the commit at fault shows below
            else:
                for commit in batch:
                    self._end(commit, None)
                return
        for commit in batch:
            try:
                await self._send_one(commit.offsets, commit.deadline, commit.sender)
            except BarnabasError as failure:
                self._end(commit, failure)
            else:
                self._end(commit, None)

    def _end(self, commit: _Commit, failure: BaseException | None) -> None:
        if commit.done.done():
            return
        if failure is None:
            self.committed_count += 1
            commit.done.set_result(None)
        else:
            self.failed_count += 1
            commit.done.set_exception(failure)

    async def _send_one(self, offsets: Offsets, deadline: float, given: Identity | None) -> None:
        left = dict(offsets)

        async def ask(connection: Connection) -> bool | ErrorCode:
            sender = given or self._member.identity()
            version = _version(connection, OffsetCommitRequest, sender)
            request = commit_request(sender, left, version)
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            response = await connection.send(request, version=version)
            self._counts.commits.record((loop.time() - began_s) * 1000)
            errors = commit_errors(response)
            for partition in [each for each in left if each not in errors]:
                del left[partition]
            return self._passing(COMMIT, errors.values(), sender, errors) or True

        if given is None:
            self._member.identity()  # raises before the coordinator is looked up
        await self._persist(ask, deadline, f"committing offsets {_shown(offsets)}")

    def _passing(
        self,
        table: Table,
        errors: Iterable[ErrorCode],
        sender: Identity,
        failed: dict[TopicPartition, ErrorCode] | None = None,
    ) -> ErrorCode | None:
        """Return why to retry the request, if so; raise errors that no retry resolves."""
        passing = None
        for code in dict.fromkeys(errors):
            action = action_for(table, code)
            if action is ErrorAction.NONE:
                continue
            passing = code
            if action is ErrorAction.FIND:
                self._coordinator.lost(f"it responded with {code.name}")
            elif action in (ErrorAction.REJOIN, ErrorAction.RESET, ErrorAction.FORGET):
                self._member.refused(code, sender)
                if failed is not None:
                    raise CommitFailedError(commit_failure(code, self._settings))
            elif action is ErrorAction.FAIL:
                self._member.refused(code, sender)
                raise self._failure(code, failed or {})
        return passing

    def _failure(self, code: ErrorCode, failed: dict[TopicPartition, ErrorCode]) -> RequestError:
        concerned = sorted(str(partition) for partition, each in failed.items() if each is code)
        if code is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            topics = sorted({partition.topic for partition, each in failed.items() if each is code})
            return TopicAuthorizationFailedError(f"not authorized for topics {', '.join(topics)}")
        if code in (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED):
            return refusal(code, self._settings)
        return request_error(code, f"{', '.join(concerned) or 'the group'}: {code.meaning}")

    async def _persist(
        self,
        ask: Callable[[Connection], Awaitable[Result | ErrorCode]],
        deadline: float,
        what: str,
    ) -> Result:
        """Ask the coordinator until there is a result; KafkaTimeoutError when time is up."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        failures = 0
        last: BarnabasError | None = None
        why: str | None = None
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    try:
                        result = await ask(await self._coordinator.connection())
                        if not isinstance(result, ErrorCode):
                            return result
                        last, why = None, f"{result.name} ({result.meaning})"
                    except NetworkError as failure:
                        self._coordinator.lost(str(failure))
                        last = failure
                    except RequestError as failure:
                        if not failure.retriable:
                            raise
                        last = failure
                    failures += 1
                    await asyncio.sleep(self._backoff.delay_ms(failures) / 1000)
        except TimeoutError:
            lost = self._coordinator.lost_because
            why = str(last or why or lost or "the coordinator was not available")
            elapsed_ms = (loop.time() - began_s) * 1000
            raise KafkaTimeoutError(f"{what}: no result after {elapsed_ms:.0f} ms: {why}") from last


def _version(connection: Connection, request: type[Message], identity: Identity) -> int:
    at_least = EPOCH_VERSION if identity.by_epoch else VERSION_MIN
    return connection.version_of(request, at_least=at_least, at_most=VERSION_MAX)


def _check(offsets: Offsets) -> None:
    for partition, wanted in offsets.items():
        if not isinstance(partition, TopicPartition) or not isinstance(wanted, OffsetAndMetadata):
            raise TypeError(
                f"offsets must map TopicPartition to OffsetAndMetadata, not {partition!r} to "
                f"{wanted!r}"
            )
        if wanted.offset < 0:
            raise ValueError(f"offset {wanted.offset} for {partition}: must be at least 0")


def _shown(offsets: Offsets) -> str:
    shown = [f"{partition}: {wanted.offset}" for partition, wanted in sorted(offsets.items())]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")
