"""Keeps the ISR of the partitions that are led here, through the controller.

Followers that have caught up join, those that lag leave. Proposals that are made while a request is
in progress are sent together in the next one; those that failed with a retriable error are retried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from barnabas.broker.loop import spawn
from barnabas.broker.partitions.hosted_partitions import HostedPartitions
from barnabas.broker.replication.isr_metrics import IsrMetrics
from barnabas.diary import subjects
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import TopicPartition
from barnabas.model.note import Note, NoteSink
from barnabas.replication.isr_state import Proposal
from barnabas.replication.partition import Partition
from barnabas.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    ResponsePartitionData,
    TopicData,
)
from barnabas.wire.schema import Message

logger = logging.getLogger("barnabas.replication")

PAUSE_S = 0.05
TIMEOUT_MS = 30_000

REFUSALS = {
    ErrorCode.INELIGIBLE_REPLICA: "ineligible-replica",
    ErrorCode.OPERATION_NOT_ATTEMPTED: "ineligible-replica",
    ErrorCode.FENCED_LEADER_EPOCH: "stale-leader-epoch",
    ErrorCode.INVALID_UPDATE_VERSION: "stale-version",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "unknown-partition",
    ErrorCode.UNKNOWN_TOPIC_ID: "unknown-partition",
}
"""How notes name the codes of the controller that end a proposal."""


class IsrProposals:
    """Proposes ISR changes to the controller, and applies its responses."""

    def __init__(
        self,
        broker_id: int,
        broker_epoch: Callable[[], int],
        partitions: HostedPartitions,
        metrics: IsrMetrics,
        *,
        ask_controller: Callable[[Message, int], Awaitable[Message]],
        note: NoteSink,
    ) -> None:
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._partitions = partitions
        self._metrics = metrics
        self._ask_controller = ask_controller
        self._note = note
        self._notes: dict[TopicPartition, Note] = {}
        """What is noted of a proposal once the controller accepts it."""
        self._waiting: dict[TopicPartition, tuple[Partition, Proposal]] = {}
        self._task: asyncio.Task[None] | None = None
        self._stopped = False

    def expand(self, partition: Partition, follower: int) -> None:
        """Propose to add a follower, if it has caught up."""
        if not self._stopped:  # followers still fetch while the broker stops
            self._propose(partition, partition.propose_expansion(follower))

    def shrink(self) -> None:
        """Propose to remove the followers that lag."""
        for partition in list(self._partitions.values()):
            if partition.is_leader:
                self._propose(partition, partition.propose_shrink())

    def _propose(self, partition: Partition, proposal: Proposal | None) -> None:
        if proposal is None:
            return
        logger.info(
            "%s: proposing ISR %s → %s: leader_epoch=%d",
            partition.topic_partition,
            list(partition.isr),
            list(proposal.isr),
            proposal.leader_epoch,
        )
        self._notes[partition.topic_partition] = partition.explained(proposal)
        self._waiting[partition.topic_partition] = (partition, proposal)
        if self._task is None:
            self._task = spawn(self._run(), "the ISR keeper")

    async def stop(self) -> None:
        """Propose nothing more."""
        self._stopped = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, {}
                if not await self._send(batch):
                    await asyncio.sleep(PAUSE_S)
        finally:
            self._task = None

    async def _send(self, batch: dict[TopicPartition, tuple[Partition, Proposal]]) -> bool:
        """Send proposals; return False if some have to be retried after a pause."""
        try:
            response = await self._ask_controller(self._request(batch), TIMEOUT_MS)
            assert isinstance(response, AlterPartitionResponse)
        except BarnabasError as failure:
            logger.info("ISR changes not sent, retrying: partitions=%d: %s", len(batch), failure)
            return self._again(batch, ErrorCode.NOT_CONTROLLER)
        whole = ErrorCode.of(response.error_code)
        if whole is not ErrorCode.NONE:
            return self._again(batch, whole)
        names = {partition.topic_id: key.topic for key, (partition, _) in batch.items()}
        answers = {
            TopicPartition(topic.topic_name or names[topic.topic_id], each.partition_index): each
            for topic in response.topics
            for each in topic.partitions
        }
        settled = True
        for key, (partition, proposal) in batch.items():
            answer = answers.get(key)
            if answer is not None and answer.error_code == ErrorCode.NONE:
                self._accepted(partition, proposal, answer)
            else:
                code = ErrorCode.of(answer.error_code) if answer else ErrorCode.UNKNOWN_SERVER_ERROR
                self._metrics.rejected()
                settled = self._again({key: (partition, proposal)}, code) and settled
        return settled

    def _request(
        self, batch: dict[TopicPartition, tuple[Partition, Proposal]]
    ) -> AlterPartitionRequest:
        own, own_epoch = self._broker_id, self._broker_epoch()
        request = AlterPartitionRequest(broker_id=own, broker_epoch=own_epoch)
        topics: dict[str, TopicData] = {}
        for key, (partition, proposal) in batch.items():
            topic = topics.get(key.topic)
            if topic is None:
                topic = topics[key.topic] = TopicData(
                    topic_name=key.topic, topic_id=partition.topic_id
                )
                request.topics.append(topic)
            topic.partitions.append(
                PartitionData(
                    partition_index=key.partition,
                    leader_epoch=proposal.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(
                            broker_id=replica,
                            broker_epoch=own_epoch if replica == own else epoch,
                        )
                        for replica, epoch in zip(proposal.isr, proposal.broker_epochs, strict=True)
                    ],
                    partition_epoch=proposal.partition_epoch,
                )
            )
        return request

    def _accepted(
        self, partition: Partition, proposal: Proposal, answer: ResponsePartitionData
    ) -> None:
        note = self._notes.pop(partition.topic_partition, None)
        if answer.leader_epoch != proposal.leader_epoch:
            return  # the controller has made a newer decision, and will send it
        if note is not None:
            version = {"to": list(answer.isr), "version": answer.partition_epoch}
            self._note(note._replace(data={**note.data, **version}))
        before = partition.isr
        rose = partition.proposal_accepted(proposal, tuple(answer.isr), answer.partition_epoch)
        self._metrics.accepted(before, partition.isr)
        if rose:
            self._partitions.watermark_rose(partition)
        else:
            self._partitions.produce_purgatory.check(partition.topic_partition)

    def _again(
        self, batch: dict[TopicPartition, tuple[Partition, Proposal]], code: ErrorCode
    ) -> bool:
        settled = True
        for key, (partition, proposal) in batch.items():
            again = partition.proposal_refused(proposal, code)
            if again is not None:
                self._waiting.setdefault(key, (partition, again))
                settled = False
            else:
                self._notes.pop(key, None)
                self._note_refusal(key, proposal, partition, code)
        return settled

    def _note_refusal(
        self, key: TopicPartition, proposal: Proposal, partition: Partition, code: ErrorCode
    ) -> None:
        data = {
            "from": list(partition.isr),
            "to": list(proposal.isr),
            "code": code.name,
            "leader_epoch": proposal.leader_epoch,
            "version": proposal.partition_epoch,
        }
        cause = REFUSALS.get(code, "invalid")
        self._note(Note("isr.refused", subjects.partition(*key), cause, data))
