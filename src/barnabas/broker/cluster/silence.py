"""Keeps a broker from serving what it led after another leader may have been elected.

`replication.standing` decides about the broker's standing; this file sends BrokerStanding to the
other brokers, and carries out the silence: every partition hides that it is led here, so that
requests for it are rejected as by a broker that does not lead; coordinators are unloaded; delayed
requests are rejected. When the broker may speak again, its partitions are shown again; after a
session has expired one by one, as the controller assigns their roles again.

While heartbeats are answered, this costs one comparison with `until_s` per request: a process that
was paused must check the clock before it answers what has waited.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, islice

from barnabas.broker.cluster.peers import Peers
from barnabas.broker.cluster.registration import Registration
from barnabas.broker.loop import spawn
from barnabas.client.errors import UnsupportedApiError
from barnabas.coordination.contract import SessionState
from barnabas.metadata.cluster_view import ClusterView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.replication.partition import Partition
from barnabas.replication.standing import ASK_EVERY_MS, IN_CONTACT, TRUST_MS, Answer, Standing
from barnabas.wire.messages.broker_standing import (
    BrokerStandingRequest,
    BrokerStandingResponse,
    LedPartition,
    LedTopic,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

logger = logging.getLogger("barnabas.broker")

PATIENCE_MS = 2 * TRUST_MS
"""A response that is too late to count still shows that its connection works."""
PARTITIONS_PER_QUESTION = 1_000
"""How many partitions' leader epochs one request asks for; all get their turn."""


class Silence:
    """Asks the other brokers when in doubt, and silences this one."""

    def __init__(
        self,
        registration: Registration,
        cluster: ClusterView,
        partitions: Mapping[tuple[str, int], Partition],
        peers: Peers,
        clock: Callable[[], float],
        *,
        enabled: bool,
        controller_epoch: Callable[[], int],
        on_role_shown: Callable[[Partition], None],
    ) -> None:
        """Ask over `peers`, which must not be shared: other requests would delay these.

        `on_role_shown` is called for each partition when the broker falls silent or speaks again.
        """
        self.is_silent = False
        self.until_s = math.inf
        """Until when this broker may speak without another look, by its clock; see `check`."""
        self._registration = registration
        self._tree = registration.tree
        self._cluster = cluster
        self._partitions = partitions
        self._peers = peers
        self._clock = clock
        self._enabled = enabled
        self._controller_epoch = controller_epoch
        self._on_role_shown = on_role_shown
        self._broker_id = registration.broker_id
        self._standing = Standing(registration.broker_id)
        self._newer: dict[TopicPartition, int] = {}
        """Leader epochs that another broker knows, and that are newer than those known here."""
        self._awaited: set[TopicPartition] = set()
        """Partitions whose role the controller has to assign again."""
        self._alive_s = -math.inf
        """When the last recorded heartbeat was sent, by the session's clock."""
        self._asked_ms = -math.inf
        self._first_asked = 0
        self._questions: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._listens = False

    @property
    def hides(self) -> bool:
        """Return whether some partition is led here and hides it."""
        return self.is_silent or bool(self._awaited)

    @property
    def in_contact(self) -> bool:
        """Return whether the coordination service has lately shown that the session is alive."""
        contact = self._tree.contact
        return contact is not None and contact.heard_ago_ms < contact.timeout_ms * IN_CONTACT

    # events

    def registered(self) -> None:
        """Handle a new registration of this broker."""
        if not self._enabled:
            return
        if not self._listens:
            self._listens = True
            self._tree.add_session_listener(self._session_changed)
        now_ms, contact = self._now_ms(), self._tree.contact
        if contact is None:
            self._standing.registered(now_ms, math.inf)
        else:
            self._alive_s = contact.asked_s
            self._standing.registered(now_ms - contact.asked_ago_ms, contact.timeout_ms)
        self._newer.clear()
        self.look()

    def role_assigned(self, partition: Partition, broker_epoch: int) -> bool:
        """Handle a role assigned to a broker epoch; return whether it was awaited.

        The controller may learn of the new registration before this broker does.
        """
        if self._standing.has_ended and broker_epoch <= self._registration.epoch:
            return False  # it was meant for the expired registration
        self._awaited.discard(partition.topic_partition)
        return partition.confirm()

    def dropped(self, key: TopicPartition) -> None:
        """Forget a partition that is no longer hosted."""
        self._awaited.discard(key)

    def fenced(self, key: TopicPartition) -> None:
        """Record that a leader knows a newer epoch of a partition that this broker follows."""
        partition = self._partitions.get(key)
        if self._enabled and partition is not None:
            self._newer[key] = partition.leader_epoch + 1

    def stop(self) -> None:
        """Send no more requests."""
        self._enabled = False
        self.until_s = math.inf
        if self._listens:
            self._tree.remove_session_listener(self._session_changed)
        self._rest()

    def _session_changed(self, _: SessionState) -> None:
        self.look()

    # looking

    def check(self) -> None:
        """Look, if it is time to."""
        if self._clock() >= self.until_s:
            self.look()

    def look(self) -> None:
        """Decide whether to speak now, and apply the decision."""
        if not self._enabled:
            return
        standing, now_ms = self._standing, self._now_ms()
        contact = self._tree.contact
        if contact is not None and contact.asked_s != self._alive_s:
            self._alive_s = contact.asked_s
            if standing.was_alive(now_ms - contact.asked_ago_ms, contact.timeout_ms):
                self._newer.clear()
        ended = self._tree.state is SessionState.EXPIRED and not standing.has_ended
        if ended:
            standing.session_ended()
        verdict = standing.verdict(
            now_ms, self._cluster.brokers, self._controller_epoch(), self._fenced()
        )
        # First, because what follows sends responses.
        self.until_s = verdict.until_ms / 1000 if verdict.speaks else math.inf
        if ended and not verdict.speaks:
            for partition in self._partitions.values():
                partition.await_role()
            self._awaited.update(map(TopicPartition._make, self._partitions))
        if verdict.speaks == self.is_silent:
            self._show(verdict.speaks, verdict.reason)
        self._go_on(now_ms, verdict.until_ms)

    def _show(self, speaks: bool, reason: str) -> None:
        self.is_silent = not speaks
        partitions = list(self._partitions.values())
        led = sum(partition.is_assigned_leader for partition in partitions)
        what = "serves its partitions again" if speaks else "stops serving its partitions"
        logger.warning("broker %d %s: leading=%d: %s", self._broker_id, what, led, reason)
        for partition in partitions:
            if speaks:
                partition.unmute()
            else:
                partition.mute()
            self._on_role_shown(partition)

    def _fenced(self) -> str | None:
        """Return a partition of which another broker knows an epoch that is not known here yet."""
        partitions = self._partitions
        for key, epoch in list(self._newer.items()):
            partition = partitions.get(key)
            if partition is not None and partition.leader_epoch < epoch:
                return str(key)
            del self._newer[key]
        return None

    def _go_on(self, now_ms: float, until_ms: float) -> None:
        """Ask if in doubt, and schedule the next look."""
        asks_from_ms = self._standing.asks_from_ms
        if now_ms < asks_from_ms:
            self._rest()
            due_ms = asks_from_ms
        else:
            if now_ms - self._asked_ms >= ASK_EVERY_MS:
                self._asked_ms = now_ms
                self._ask(now_ms)
            due_ms = min(self._asked_ms + ASK_EVERY_MS, until_ms)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_ms < math.inf:
            # A millisecond late rather than early: some loops round.
            delay_s = max(due_ms - now_ms, 0) / 1000 + 0.001
            self._timer = asyncio.get_running_loop().call_later(delay_s, self.look)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for question in self._questions:
            question.cancel()
        self._peers.close()

    # asking

    def _ask(self, now_ms: float) -> None:
        """Ask all other brokers, including those that have not responded yet."""
        led = self._led()
        for broker_id in self._cluster.brokers:
            if broker_id != self._broker_id:
                task = spawn(
                    self._question(broker_id, led, now_ms), f"BrokerStanding to broker {broker_id}"
                )
                self._questions.add(task)
                task.add_done_callback(self._questions.discard)

    def _led(self) -> list[Partition]:
        led = [each for each in self._partitions.values() if each.is_assigned_leader]
        if len(led) <= PARTITIONS_PER_QUESTION:
            return led
        first = self._first_asked % len(led)
        self._first_asked = first + PARTITIONS_PER_QUESTION
        return list(islice(chain(led[first:], led), PARTITIONS_PER_QUESTION))

    async def _question(self, broker_id: int, led: Sequence[Partition], now_ms: float) -> None:
        try:
            async with asyncio.timeout(PATIENCE_MS / 1000):
                try:
                    answer = await self._ask_ours(broker_id, led, now_ms)
                except UnsupportedApiError:
                    answer = await self._ask_any(broker_id, led, now_ms)
        except (BarnabasError, TimeoutError) as failure:
            logger.debug("broker %d did not confirm this broker's standing: %s", broker_id, failure)
            return
        self._standing.answered(broker_id, answer)
        self.look()

    async def _ask_ours(self, broker_id: int, led: Sequence[Partition], now_ms: float) -> Answer:
        topics: dict[str, LedTopic] = {}
        for partition in led:
            name, number = partition.topic_partition
            topic = topics.setdefault(name, LedTopic(name=name))
            topic.partitions.append(
                LedPartition(partition_index=number, leader_epoch=partition.leader_epoch)
            )
        request = BrokerStandingRequest(broker_id=self._broker_id, topics=list(topics.values()))
        response: BrokerStandingResponse = await self._peers.ask(broker_id, request, PATIENCE_MS)
        if response.error_code:
            raise RequestError(ErrorCode.of(response.error_code))
        for answered in response.topics:
            for each in answered.partitions:
                self._learn(TopicPartition(answered.name, each.partition_index), each.leader_epoch)
        return Answer(now_ms, response.is_member, response.in_contact, response.controller_epoch)

    async def _ask_any(self, broker_id: int, led: Sequence[Partition], now_ms: float) -> Answer:
        """Ask a broker without BrokerStanding, which cannot say whether it is in contact."""
        names = dict.fromkeys(partition.topic_partition.topic for partition in led)
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names],
            allow_auto_topic_creation=False,
        )
        response: MetadataResponse = await self._peers.ask(broker_id, request, PATIENCE_MS)
        for topic in response.topics:
            for each in topic.partitions:
                if topic.name is not None and not each.error_code:
                    key = TopicPartition(topic.name, each.partition_index)
                    self._learn(key, each.leader_epoch)
        members = {each.node_id for each in response.brokers}
        return Answer(now_ms, self._broker_id in members)

    def _learn(self, key: TopicPartition, epoch: int) -> None:
        partition = self._partitions.get(key)
        if partition is not None and partition.leader_epoch < epoch:
            self._newer[key] = epoch

    def _now_ms(self) -> float:
        return self._clock() * 1000
