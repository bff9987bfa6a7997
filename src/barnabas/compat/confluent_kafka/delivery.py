"""The messages of a `Producer` on their way to brokers, and the reports of their delivery.

`produce` never waits. A message whose topic is not known yet waits here, in order, while the loop
looks for the topic; all others go straight into a batch. A batch that is done becomes one event:
the next poll reports its messages.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.client_id import producer_client_id
from barnabas.client.errors import KafkaTimeoutError, NetworkError
from barnabas.compat.confluent_kafka.config import Settings
from barnabas.compat.confluent_kafka.error import KafkaError, KafkaException
from barnabas.compat.confluent_kafka.error_codes import text_of
from barnabas.compat.confluent_kafka.events import Events
from barnabas.compat.confluent_kafka.failures import UndeliveredError, error_of, exception_of
from barnabas.compat.confluent_kafka.message import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Message,
)
from barnabas.compat.confluent_kafka.notices import Notices
from barnabas.compat.confluent_kafka.partitioners import choice
from barnabas.config.clients.producer import ProducerOptions
from barnabas.metadata.topic_names import illegal_name
from barnabas.model.errors import BarnabasError
from barnabas.producer.accumulator import PendingBatch, RecordFuture, Refusal
from barnabas.producer.core import ProducerCore

Result = TypeVar("Result")

FOREVER_MS = 2_147_483_647.0


@dataclass(slots=True)
class Outgoing:
    """One message, and the callback for its delivery report."""

    topic: str
    value: bytes | None
    key: bytes | None
    headers: list[tuple[str, bytes | None]] | None
    partition: int
    timestamp_ms: int
    on_delivery: Callable[..., object] | None
    produced_s: float
    future: RecordFuture | None = None


class Delivery:
    """The messages of one producer."""

    def __init__(self, options: ProducerOptions, settings: Settings) -> None:
        self.options = options
        self.settings = settings
        self.events = Events()
        self._lock = threading.RLock()
        self._choose = choice(settings.partitioner)
        self._size_max = options.max_request_size
        self._waiting: dict[str, deque[Outgoing]] = {}
        self._searches: set[asyncio.Task[None]] = set()
        self._batches: dict[PendingBatch, deque[Outgoing]] = {}
        self._undelivered = 0
        self._client_id = producer_client_id(options)
        self.thread = LoopThread(self._client_id)
        self.core = self.thread.call(self._open())
        self.thread.hold(self.core)

    async def _open(self) -> ProducerCore:
        core = ProducerCore(
            self.options,
            post=self.thread.post,
            wait=_no_wait,
            client_id=self._client_id,
        )
        Notices(self.settings, self.events, core.cluster_client, self._statistics)
        core.begin()
        core.cluster_client.request_refresh()
        return core

    def __len__(self) -> int:
        """Return how many messages were not reported yet."""
        return self._undelivered

    # From the program's threads.

    def produce(self, message: Outgoing) -> None:
        """Queue a message, or raise why it cannot be."""
        with self._lock:
            if self._undelivered >= self.settings.queue_messages_max > 0:
                raise BufferError("Local: Queue full")
            if self.core.accumulator.closed:
                raise _refused(Refusal.CLOSED)
            waiting = self._waiting.get(message.topic)
            if waiting is not None:
                waiting.append(message)
            elif not self._append(message):
                if len(message.key or b"") + len(message.value or b"") > self._size_max:
                    raise _refused(Refusal.SIZE)
                if illegal_name(message.topic):
                    failure = UndeliveredError(KafkaError(KafkaError.TOPIC_EXCEPTION))
                    self._fail(deque([message]), failure)
                else:
                    self._waiting[message.topic] = deque([message])
                    self.thread.post(self._look_for, message.topic)
            self._undelivered += 1

    def _append(self, message: Outgoing) -> bool:
        """Put a message into a batch; return False if its topic is not known."""
        accumulator = self.core.accumulator
        partition: int | None = message.partition
        if message.partition < 0:
            count = accumulator.partition_count(message.topic)
            if not count:
                return False
            partition = self._choose(message.key, count)
        taken = accumulator.append(
            message.topic,
            message.value,
            message.key,
            message.headers,
            partition,
            message.timestamp_ms or None,
        )
        if not isinstance(taken, RecordFuture):
            if taken is Refusal.TOPIC:
                return False
            raise _refused(taken)
        message.future = taken
        batch = taken.batch
        messages = self._batches.get(batch)
        if messages is None:
            self._batches[batch] = deque([message])
            batch.watch(partial(self._done, batch))
        else:
            messages.append(message)
        return True

    async def purge(self, *, in_queue: bool, in_flight: bool) -> None:
        """Fail messages that were not delivered: queued ones, and those that were sent."""
        core = self.core
        if in_queue:
            failure = UndeliveredError(KafkaError(KafkaError._PURGE_QUEUE))
            self.drop_waiting(failure)
            core.sender.collect(core.now_ms())
            core.sender.abandon(failure, in_flight=False)
        if in_flight:
            failure = UndeliveredError(KafkaError(KafkaError._PURGE_INFLIGHT))
            core.sender.abandon(failure, in_flight=True, queued=False)

    def drop_waiting(self, failure: BarnabasError) -> None:
        """Fail the messages whose topics are not known yet."""
        with self._lock:
            for topic in list(self._waiting):
                self._fail_waiting(topic, failure)

    def hurry(self, more: int) -> None:
        """Have batches sent without lingering (1), or no longer (-1)."""
        self.thread.post(self._hurry, more)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop; delivery reports are served meanwhile."""
        outcome = asyncio.run_coroutine_threadsafe(work, self.thread.loop)
        outcome.add_done_callback(lambda _: self.events.add(_nothing))
        try:
            while not outcome.done():
                self.events.wait(None, until=outcome.done)
                self.events.serve()
        except BaseException:
            outcome.cancel()
            raise
        return outcome.result()

    def call(self, work: Coroutine[Any, Any, Result], timeout_s: float | None) -> Result:
        """Run a coroutine on the loop; raise KafkaException for what it raises."""
        try:
            return self.thread.call(work, None if timeout_s is None else timeout_s * 1000)
        except BarnabasError as failure:
            raise exception_of(failure) from failure

    async def appended(self) -> None:
        """Wait until no message waits for its topic."""
        await asyncio.gather(*self._searches)

    def close(self) -> None:
        """Disconnect; what was not delivered is dropped."""
        if not self.thread.running:
            return
        if self.thread.current:  # the last reference was one of the loop's own
            self.thread.stop()
            return
        try:
            self.thread.call(self.core.close(0.0))
        finally:
            self.thread.stop()

    # On the loop.

    def _hurry(self, more: int) -> None:
        self.core.sender.flushing += more
        self.core.look_again()

    def _look_for(self, topic: str) -> None:
        search = self.core.background(self._find(topic))
        self._searches.add(search)
        search.add_done_callback(self._searches.discard)

    async def _find(self, topic: str) -> None:
        """Look for a topic, then append the messages that wait for it."""
        while (left_ms := self._left_ms(topic)) is not None:
            try:
                await self.core.topics.know(topic, min(left_ms, self.settings.propagation_ms_max))
            except KafkaTimeoutError as failure:
                cause = failure.__cause__
                if isinstance(cause, BarnabasError) and not isinstance(cause, NetworkError):
                    self._fail_waiting(topic, cause)  # the cluster is there, the topic is not
                else:
                    self._expire_waiting(topic, failure)
            except BarnabasError as failure:
                self._fail_waiting(topic, failure)
            else:
                if await self._append_waiting(topic):
                    return

    def _left_ms(self, topic: str) -> float | None:
        """Return how long the first message may still wait for its topic; None: none waits."""
        with self._lock:
            waiting = self._waiting.get(topic)
            if not waiting:
                return None
            waited_ms = (time.monotonic() - waiting[0].produced_s) * 1000
            return max(1.0, self.options.delivery_timeout_ms - waited_ms)

    async def _append_waiting(self, topic: str) -> bool:
        """Append what waits for a topic; return False if the topic is unknown again."""
        while True:
            with self._lock:
                waiting = self._waiting.get(topic)
                if not waiting:
                    self._waiting.pop(topic, None)
                    return True
                try:
                    if not self._append(waiting[0]):
                        return False
                    waiting.popleft()
                    continue
                except BufferError:
                    pass
                except KafkaException as refused:
                    message = waiting.popleft()
                    self._fail(deque([message]), UndeliveredError(refused.args[0]))
                    continue
            await asyncio.sleep(0.01)  # memory is freed by batches that are done

    def _fail_waiting(self, topic: str, failure: BarnabasError) -> None:
        with self._lock:
            messages = self._waiting.pop(topic, None)
            if messages:
                self._fail(messages, failure)

    def _expire_waiting(self, topic: str, failure: BarnabasError) -> None:
        """Fail the messages that have waited too long for their topic."""
        begun_s = time.monotonic() - self.options.delivery_timeout_ms / 1000
        expired: deque[Outgoing] = deque()
        with self._lock:
            waiting = self._waiting.get(topic, expired)
            while waiting and waiting[0].produced_s <= begun_s:
                expired.append(waiting.popleft())
            if not waiting:
                self._waiting.pop(topic, None)
            if expired:
                self._fail(expired, failure)

    def _done(self, batch: PendingBatch) -> None:
        with self._lock:
            messages = self._batches.pop(batch)
        ended_s = time.monotonic()
        self.events.add(lambda: self._report(messages, None, ended_s))

    def _fail(self, messages: deque[Outgoing], failure: BarnabasError) -> None:
        """Have messages that are in no batch reported as failed."""
        if self.core.transaction_manager is not None:
            self.thread.post(self.core.transaction_manager.transaction.fail, failure)
        ended_s, error = time.monotonic(), delivery_error(failure)
        self.events.add(lambda: self._report(messages, error, ended_s))

    # In the program's polls.

    def _report(self, messages: deque[Outgoing], error: KafkaError | None, ended_s: float) -> None:
        while messages:
            message = messages.popleft()
            with self._lock:
                self._undelivered -= 1
            if message.on_delivery is None:
                continue
            try:
                self._report_one(message, error, ended_s)
            except BaseException:
                if messages:  # the next poll reports the others
                    self.events.add(lambda: self._report(messages, error, ended_s))
                raise

    def _report_one(self, message: Outgoing, error: KafkaError | None, ended_s: float) -> None:
        assert message.on_delivery is not None
        partition, timestamp = message.partition, (0, 0)
        offset: int | None = None
        if message.future is not None:
            partition = message.future.batch.partition.partition
            failure = message.future.exception
            if failure is not None:
                error = delivery_error(failure)
            else:
                written = message.future.value
                offset = written.offset if written.offset >= 0 else None  # none with acks=0
                kind = TIMESTAMP_LOG_APPEND_TIME if written.timestamp_type else 0
                timestamp = (kind or TIMESTAMP_CREATE_TIME, written.timestamp)
        if error is None and self.settings.only_errors:
            return
        report: Message[Any, Any] = Message(
            message.topic,
            partition,
            offset,
            message.key,
            message.value,
            None,
            error,
            timestamp,
            ended_s - message.produced_s,
        )
        message.on_delivery(error, report)

    def _statistics(self) -> dict[str, Any]:
        own = self.core.metrics()["producer-metrics"]
        return {
            "type": "producer",
            "msg_cnt": self._undelivered,
            "msg_max": self.settings.queue_messages_max,
            "txmsgs": int(own.get("record-send-total", 0)),
            "txmsg_bytes": int(own.get("byte-total", 0)),
        }


def delivery_error(failure: BaseException) -> KafkaError:
    """Return the error of a message that was not delivered."""
    return error_of(failure, timed_out=KafkaError._MSG_TIMED_OUT)


def _refused(refusal: Refusal) -> Exception:
    """Return what `produce` raises for a message that cannot be queued."""
    if refusal is Refusal.MEMORY:
        return BufferError("Local: Queue full")
    code, detail = {
        Refusal.SIZE: (KafkaError.MSG_SIZE_TOO_LARGE, ""),
        Refusal.PARTITION: (KafkaError._UNKNOWN_PARTITION, ""),
        Refusal.EMPTY: (KafkaError._INVALID_ARG, "it needs at least one of key and value"),
        Refusal.CLOSED: (KafkaError._STATE, "no transaction is open"),
    }.get(refusal, (KafkaError._INVALID_ARG, refusal.value))
    return KafkaException(not_produced(code, detail))


def not_produced(code: int, detail: str = "") -> KafkaError:
    """Return the error of a message that `produce` does not take."""
    more = f": {detail}" if detail else ""
    return KafkaError(code, f"Unable to produce message: {text_of(code)}{more}")


def _no_wait(core: ProducerCore, batch: PendingBatch, timeout: float | None) -> None:
    raise AssertionError("reports are events: nothing waits for a batch")


def _nothing() -> None:
    """Wake a thread that waits for events."""
