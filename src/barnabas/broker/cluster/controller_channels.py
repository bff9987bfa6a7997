"""The controller's channels to the brokers: one each, in strict order, retried until it is dead.

A request without a response is sent again, since the broker may or may not have received it; all
requests of the controller are idempotent. What is meant for an older epoch of a broker is not sent
to it after a restart: on a new registration the controller sends everything again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Any

from barnabas.broker.cluster.controller_commands import ControllerCommands
from barnabas.broker.cluster.dialer import Dialer
from barnabas.broker.loop import spawn
from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.config.broker import BrokerOptions
from barnabas.config.listeners import Listeners
from barnabas.controller.outbox import Letter
from barnabas.controller.term import Term
from barnabas.controller.watches import Event
from barnabas.metadata.cluster_view import BrokerView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from barnabas.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse

logger = logging.getLogger("barnabas.controller")

PAUSE_S = 0.1


class ControllerChannels:
    """The channels of one term."""

    def __init__(
        self,
        broker_id: int,
        control: ControllerCommands,
        options: Callable[[], BrokerOptions],
        dialer: Dialer,
        term: Term,
        post: Callable[[Event], None],
    ) -> None:
        """Post an event to the term for each response; `control` serves this broker itself."""
        self._broker_id = broker_id
        self._control = control
        self._options = options
        self._dialer = dialer
        self._term = term
        self._post = post
        self._channels: dict[int, tuple[int, asyncio.Queue[Letter], asyncio.Task[None]]] = {}

    @property
    def waiting(self) -> dict[int, int]:
        """Return how many requests wait to be sent to each broker."""
        return {broker_id: queue.qsize() for broker_id, (_, queue, _) in self._channels.items()}

    def send(self, letters: Iterable[Letter]) -> None:
        """Queue requests for their brokers."""
        alive = self._term.knowledge.brokers
        for broker_id in [each for each in self._channels if each not in alive]:
            self._channels.pop(broker_id)[2].cancel()
        for letter in letters:
            self._queue(letter.broker_id, letter.request.broker_epoch).put_nowait(letter)

    async def all_delivered(self, timeout_ms: int) -> None:
        """Wait until every request so far is answered, or the timeout expires."""
        queues = [queue for _, queue, _ in self._channels.values()]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await asyncio.gather(*(queue.join() for queue in queues))

    async def close(self) -> None:
        """Close all channels; what was not sent is dropped."""
        tasks = [task for _, _, task in self._channels.values()]
        self._channels.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _queue(self, broker_id: int, epoch: int) -> asyncio.Queue[Letter]:
        channel = self._channels.get(broker_id)
        if channel is not None and channel[0] == epoch:
            return channel[1]
        if channel is not None:
            channel[2].cancel()
        queue: asyncio.Queue[Letter] = asyncio.Queue()
        own = broker_id == self._broker_id
        work = self._hand_over(queue) if own else self._serve(broker_id, epoch, queue)
        task = spawn(work, f"the controller's channel to broker {broker_id}")
        self._channels[broker_id] = (epoch, queue, task)
        return queue

    async def _hand_over(self, queue: asyncio.Queue[Letter]) -> None:
        """Apply requests to this controller's own broker, without the network."""
        while True:
            letter = await queue.get()
            try:
                self._answered(letter, await self._control.take(letter.request))
            except BarnabasError:  # as the router does on other brokers
                logger.exception(
                    "broker %d: %s of its own controller failed",
                    letter.broker_id,
                    type(letter.request).__name__,
                )
            queue.task_done()

    async def _serve(self, broker_id: int, epoch: int, queue: asyncio.Queue[Letter]) -> None:
        connection: Connection | None = None
        try:
            while True:
                letter = await queue.get()
                while True:
                    try:
                        if connection is None or connection.closed:
                            connection = await self._open(broker_id)
                        response = await connection.send(letter.request)
                        break
                    except BarnabasError as failure:
                        logger.info(
                            "broker %d, epoch=%d: %s not delivered, retry in %s s: %s",
                            broker_id,
                            epoch,
                            type(letter.request).__name__,
                            PAUSE_S,
                            failure,
                        )
                        await asyncio.sleep(PAUSE_S)
                # After a restart its new registration makes the controller send everything again.
                if response.error_code != ErrorCode.STALE_BROKER_EPOCH:
                    self._answered(letter, response)
                queue.task_done()
        finally:
            if connection is not None:
                connection.close()

    async def _open(self, broker_id: int) -> Connection:
        view = self._term.knowledge.brokers.get(broker_id)
        if view is None:  # it is dead, and the event that says so will close this channel
            raise RequestError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker_id} is not alive")
        options = self._options()
        listener = controller_listener(view, options.endpoints)
        if listener not in view.endpoints:
            raise RequestError(
                ErrorCode.LISTENER_NOT_FOUND, f"broker {broker_id} has no listener {listener}"
            )
        host, port = view.endpoints[listener]
        return await self._dialer.open(
            listener,
            Address(host or "127.0.0.1", port),
            client_id=str(self._broker_id),
            request_timeout_ms=options.controller_socket_timeout_ms,
        )

    def _answered(self, letter: Letter, response: Any) -> None:
        term, broker_id, request = self._term, letter.broker_id, letter.request
        if isinstance(request, LeaderAndIsrRequest):
            roles = role_errors(request, response)
            self._post(lambda: term.roles_answered(broker_id, roles))
        elif isinstance(request, StopReplicaRequest):
            stops = stop_errors(request, response)
            if stops:
                self._post(lambda: term.stop_answered(broker_id, stops))


def controller_listener(view: BrokerView, own: Listeners) -> str:
    """Return the listener of a broker that the controller connects to; `own` are its own.

    Registrations of Apache Kafka do not name a control plane, but its brokers accept controller
    requests on any listener: if one has the name of our own control plane, that one is used.
    Otherwise it is the inter-broker listener.
    """
    for name in (view.control_plane, own.control_plane):
        if name is not None and name in view.endpoints:
            return name
    return own.inter_broker


def role_errors(
    request: LeaderAndIsrRequest, response: LeaderAndIsrResponse
) -> dict[TopicPartition, ErrorCode]:
    """Return the error code of each role."""
    names = {topic.topic_id: topic.topic_name for topic in request.topic_states}
    errors = {
        TopicPartition(each.topic_name, each.partition_index): ErrorCode.of(each.error_code)
        for each in response.partition_errors
    }
    for topic in response.topics:
        for each in topic.partition_errors:
            key = TopicPartition(names[topic.topic_id], each.partition_index)
            errors[key] = ErrorCode.of(each.error_code)
    return errors


def stop_errors(
    request: StopReplicaRequest, response: StopReplicaResponse
) -> dict[TopicPartition, ErrorCode]:
    """Return the error code of each replica that was to be deleted."""
    errors = {
        TopicPartition(each.topic_name, each.partition_index): ErrorCode.of(each.error_code)
        for each in response.partition_errors
    }
    whole = ErrorCode.of(response.error_code)
    return {
        key: whole if whole is not ErrorCode.NONE else errors.get(key, ErrorCode.NONE)
        for topic in request.topic_states
        for state in topic.partition_states
        if state.delete_partition
        and (key := TopicPartition(topic.topic_name, state.partition_index))
    }
