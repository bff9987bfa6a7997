"""Produce: append record batches to partitions that this broker leads.

acks=0 gets no response (an error closes the connection, so that the producer notices); acks=1 is
answered after the append; acks=-1 once the high watermark has passed it. With acks 1 and -1, the
response waits for a flush that the topic's policy demands. v0-v2 carry the old message formats,
which are converted. v8 added errors per record, v10 the new leader with an error, v13 topic ids.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.leader_hint import WRONG_LEADER, endpoints_of, leader_of
from barnabas.broker.partitions.delayed_append import ALL_REPLICAS, Wait
from barnabas.broker.partitions.rejected_batches import count_rejected, reason_of
from barnabas.diary import subjects
from barnabas.kernels import TRANSACTIONAL_BIT, check_batch
from barnabas.kernels.batch_header import (
    ATTRIBUTES_AT,
    BATCH_MAGIC,
    HEADER_SIZE,
    MAGIC_AT,
    PRODUCER_ID_AT,
)
from barnabas.metadata.topic_names import DIARY_TOPIC, INTERNAL_TOPICS
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, RequestError, StorageError
from barnabas.model.ids import TopicPartition
from barnabas.model.note import Note
from barnabas.replication.partition import Partition
from barnabas.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from barnabas.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.network.request import Request

ADMIN_CLIENT = "__admin_client"
"""The only client id that may write to internal topics."""

FIRST_NEW_LEADER_VERSION = 10
FIRST_ABORTABLE_VERSION = 11
_LOW_ATTRIBUTES_AT = ATTRIBUTES_AT + 1  # their lower byte
_PRODUCER = Struct(">qh")

REJECTIONS = {
    ErrorCode.MESSAGE_TOO_LARGE: "too-large",
    ErrorCode.RECORD_LIST_TOO_LARGE: "too-large",
    ErrorCode.NOT_ENOUGH_REPLICAS: "not-enough-replicas",
    ErrorCode.INVALID_TIMESTAMP: "bad-timestamp",
    ErrorCode.CORRUPT_MESSAGE: "corrupt",
    ErrorCode.INVALID_RECORD: "invalid-record",
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER: "sequence",
    ErrorCode.INVALID_PRODUCER_EPOCH: "fenced",
    ErrorCode.PRODUCER_FENCED: "fenced",
    ErrorCode.UNKNOWN_PRODUCER_ID: "unknown-producer",
    ErrorCode.INVALID_TXN_STATE: "transaction-state",
    ErrorCode.TRANSACTION_ABORTABLE: "transaction-state",
    ErrorCode.CONCURRENT_TRANSACTIONS: "transaction-state",
    ErrorCode.KAFKA_STORAGE_ERROR: "storage",
}
"""How the diary names why records were rejected; other codes only send the client elsewhere."""

Waiting = Wait[PartitionProduceResponse]

Verdicts = Mapping[TopicPartition, ErrorCode]
"""Another broker's answer about the partitions of a transaction."""


def handle(
    broker: Broker, request: Request[ProduceRequest]
) -> ProduceResponse | Coroutine[Any, Any, ProduceResponse | None] | None:
    """Append each partition's records; respond now, or when they are safe."""
    if _has_transactional(request.body):
        transactional_id = request.body.transactional_id
        if transactional_id is None:
            # Nobody could end such a transaction: no coordinator would know it.
            raise RequestError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "transactional batch in a request without a transactional id",
            )
        broker.transactions.authorize(request, transactional_id, Operation.WRITE)
        if needs_verification(broker, transactional_id):
            return _handle_verified(broker, request, transactional_id)
    return _handle(broker, request, {})


async def _handle_verified(
    broker: Broker, request: Request[ProduceRequest], transactional_id: str
) -> ProduceResponse | None:
    """Ask the transaction's coordinator, which is another broker, about new partitions first."""
    for topic in request.body.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = bytearray(data.records)  # their buffer is reused
    while True:
        asked, seen = _unverified(broker, request)
        verdicts = await broker.transactions.verify_remotely(transactional_id, asked)
        # A marker that arrived meanwhile may have ended the transaction in question.
        if all(_markers_seen(broker, key) == count for key, count in seen.items()):
            return _handle(broker, request, verdicts)


def needs_verification(broker: Broker, transactional_id: str) -> bool:
    """Return whether another broker must be asked about a transaction."""
    return (
        broker.options.transaction_partition_verification_enable
        and broker.transactions.coordinator_of(transactional_id) != broker.broker_id
    )


def _unverified(
    broker: Broker, request: Request[ProduceRequest]
) -> tuple[dict[TopicPartition, tuple[int, int]], dict[TopicPartition, int]]:
    """Return producers by the partitions that are new to them, and the markers seen there."""
    asked: dict[TopicPartition, tuple[int, int]] = {}
    seen: dict[TopicPartition, int] = {}
    for topic in request.body.topic_data:
        name = topic.name
        if request.version >= 13:
            name = broker.topic_name(topic.topic_id) or ""
        for data in topic.partition_data:
            key = TopicPartition(name, data.index)
            partition = broker.partitions.get(key)
            if partition is None or data.records is None or len(data.records) < HEADER_SIZE:
                continue
            producer_id, epoch = _PRODUCER.unpack_from(data.records, PRODUCER_ID_AT)
            if not partition.log.producers.has_open_transaction(producer_id):
                asked[key] = (producer_id, epoch)
                seen[key] = partition.log.producers.markers_seen
    return asked, seen


def _markers_seen(broker: Broker, key: TopicPartition) -> int:
    partition = broker.partitions.get(key)
    return -1 if partition is None else partition.log.producers.markers_seen


def _handle(
    broker: Broker, request: Request[ProduceRequest], verdicts: Verdicts
) -> ProduceResponse | None:
    body = request.body
    acks = body.acks
    response = ProduceResponse()
    waiting: list[Waiting] = []
    failed: PartitionProduceResponse | None = None
    for topic in body.topic_data:
        name, refusal = _resolve(broker, request, topic)
        results = []
        for data in topic.partition_data:
            if refusal is not None:
                result = _refused(broker, data.index, refusal)
            else:
                result = _append(broker, request, name, data, waiting, verdicts)
            if result.error_code:
                failed = result
            results.append(result)
        response.responses.append(
            TopicProduceResponse(
                name=topic.name, topic_id=topic.topic_id, partition_responses=results
            )
        )
    if acks == 0:
        if failed is not None:
            reason = ErrorCode.of(failed.error_code).name
            request.connection.close(f"produce with acks=0 failed: {reason}")
        else:
            request.skip_answer(broker.clock())
        return None
    if waiting:
        operation = broker.partitions.when_safe(
            waiting,
            broker.timer.now_ms() + max(body.timeout_ms, 0),
            partial(_answer, broker, request, response),
            settle=_settle_replicated if acks == ALL_REPLICAS else _settle,
            acks=acks,
        )
        if not operation.completed:
            request.park(operation)
        return None
    if failed is not None:
        _add_leader_hints(broker, request, response)
    return response


def _add_leader_hints(
    broker: Broker, request: Request[ProduceRequest], response: ProduceResponse
) -> None:
    """Add the current leaders of partitions that this broker does not lead."""
    if request.version < FIRST_NEW_LEADER_VERSION:
        return
    leaders: set[int] = set()
    for topic in response.responses:
        for result in topic.partition_responses:
            if result.error_code not in WRONG_LEADER:
                continue
            name = topic.name or broker.topic_name(topic.topic_id) or ""
            leader = leader_of(broker, name, result.index)
            if leader is not None:
                result.current_leader = LeaderIdAndEpoch(
                    leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
                )
                leaders.add(leader.leader_id)
    response.node_endpoints = [
        NodeEndpoint(node_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
        for each in endpoints_of(broker, request.session, leaders)
    ]


def refuse(request: ProduceRequest, code: ErrorCode, message: str | None) -> ProduceResponse:
    """Answer every partition with one error."""
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(
                        index=data.index, error_code=code, base_offset=-1, error_message=message
                    )
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def _settle_replicated(
    partition: Partition, result: PartitionProduceResponse, code: ErrorCode
) -> None:
    """Note how an append with acks=-1 ended: enough replicas must have it, also by now."""
    if code is ErrorCode.NONE and len(partition.maximal_isr) < partition.min_isr:
        code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    _settle(partition, result, code)


def _settle(partition: Partition, result: PartitionProduceResponse, code: ErrorCode) -> None:
    result.error_code = code
    if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        result.base_offset = -1


def _answer(broker: Broker, request: Request[ProduceRequest], response: ProduceResponse) -> None:
    _add_leader_hints(broker, request, response)
    request.answer(response)


def _resolve(
    broker: Broker, request: Request[ProduceRequest], topic: TopicProduceData
) -> tuple[str, RequestError | None]:
    """Return a topic's name, and the error if it may not be written to."""
    name = topic.name
    if request.version >= 13:
        view = broker.cluster.topic_by_id(topic.topic_id)
        if view is None:
            return "", RequestError(ErrorCode.UNKNOWN_TOPIC_ID)
        name = view.name
    if name == DIARY_TOPIC and _is_from_broker(broker, request):
        return name, None
    if not broker.allows(request.session, Operation.WRITE, ResourceType.TOPIC, name):
        return name, RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if name in INTERNAL_TOPICS:
        if request.client_id != ADMIN_CLIENT:
            return name, RequestError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"topic {name} is internal: clients cannot write to it",
            )
        # A client chooses its id, so that offsets and transactions could be forged.
        if not broker.allows_cluster(request.session, Operation.CLUSTER_ACTION):
            return name, RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return name, None


def _is_from_broker(broker: Broker, request: Request[ProduceRequest]) -> bool:
    """Return whether another broker of this cluster may have sent this, to write its diary."""
    return (request.client_id or "").startswith("broker-") and broker.sees(
        request.session, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
    )


def _append(
    broker: Broker,
    request: Request[ProduceRequest],
    topic: str,
    data: PartitionProduceData,
    waiting: list[Waiting],
    verdicts: Verdicts,
) -> PartitionProduceResponse:
    index = data.index
    partition = broker.partitions.get((topic, index))
    if partition is None:
        return _refused(broker, index, broker.absent(topic, index))
    if data.records is None:
        return _refused(broker, index, RequestError(ErrorCode.INVALID_RECORD, "no records"))
    acks = request.body.acks
    if acks not in (-1, 0, 1):
        return _refused(
            broker,
            index,
            RequestError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks}: must be -1, 0 or 1"),
        )
    transactional_id = request.body.transactional_id
    if transactional_id is not None and _is_transactional(data.records):
        if not partition.is_leader:  # a coordinator's answer is not ours to report
            return _refused(broker, index, RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        code = verdicts.get(partition.topic_partition)
        if code is None:
            code = _verify(broker, request, transactional_id, partition, data.records)
        elif code is ErrorCode.TRANSACTION_ABORTABLE and request.version < FIRST_ABORTABLE_VERSION:
            code = ErrorCode.INVALID_TXN_STATE
        if code is not ErrorCode.NONE:
            return _rejected(broker, request, partition, data, RequestError(code))
    try:
        appended = broker.partitions.append(
            partition, data.records, acks, request.version, broker.now_ms()
        )
    except (RequestError, CorruptRecordError, StorageError) as failure:
        count_rejected(broker.partitions.traffic.of(partition), len(data.records), failure)
        if isinstance(failure, RequestError):
            return _rejected(broker, request, partition, data, failure)
        if isinstance(failure, CorruptRecordError):
            refusal = RequestError(failure.code, str(failure))
            return _rejected(broker, request, partition, data, refusal)
        broker.partitions.append_failed(partition, failure)
        refusal = RequestError(ErrorCode.KAFKA_STORAGE_ERROR, str(failure))
        return _rejected(broker, request, partition, data, refusal)
    result = PartitionProduceResponse(
        index=index,
        base_offset=appended.first_offset,
        log_append_time_ms=appended.append_time_ms,
        log_start_offset=appended.log_start_offset,
    )
    if (
        acks
        and partition.log.high_watermark <= appended.last_offset
        and (acks == ALL_REPLICAS or partition.flush_owed)
    ):
        waiting.append((partition, appended.last_offset + 1, result))
    return result


def _rejected(
    broker: Broker,
    request: Request[ProduceRequest],
    partition: Partition,
    data: PartitionProduceData,
    refusal: RequestError,
) -> PartitionProduceResponse:
    """Answer that records were rejected, and note why unless the client merely asks elsewhere."""
    cause = REJECTIONS.get(refusal.code)
    if cause is not None:
        session, options = request.session, partition.log.options
        faults = [reason for _, reason in getattr(refusal, "record_errors", ())]
        if cause == "invalid-record" and options.compact and _lacks_key([*faults, str(refusal)]):
            cause = "no-key-compacted"
        told = {
            "partition": subjects.partition(*partition.topic_partition),
            "code": refusal.code.name,
            "reason": "; ".join(dict.fromkeys([str(refusal), *faults[:1]])),
            "principal": str(session.principal),
            "host": session.client_host,
            "client_id": request.client_id or "",
            "size": len(data.records or b""),
        }
        if cause == "too-large":
            told["limit"] = options.max_message_bytes
        elif cause == "not-enough-replicas":
            told |= {"isr": len(partition.isr), "min_isr": partition.min_isr}
        if data.records is not None and len(data.records) >= HEADER_SIZE:
            producer_id, epoch = _PRODUCER.unpack_from(data.records, PRODUCER_ID_AT)
            if producer_id >= 0:
                told |= {"producer_id": producer_id, "producer_epoch": epoch}
        subject = subjects.client(request.client_id, session.client_host)
        broker.journal.note(Note("reject.produce", subject, cause, told))
    return _refused(broker, data.index, refusal)


def _lacks_key(reasons: list[str]) -> bool:
    return any("key" in reason for reason in reasons)


def _is_transactional(records: bytes | bytearray | memoryview) -> bool:
    return (
        len(records) >= HEADER_SIZE
        and records[MAGIC_AT] == BATCH_MAGIC
        and records[_LOW_ATTRIBUTES_AT] & TRANSACTIONAL_BIT != 0
    )


def _has_transactional(request: ProduceRequest) -> bool:
    """Return whether a partition's first batch belongs to a transaction.

    Corruption in transit may make a batch look like that; then appending it reports its checksum.
    """
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None and _is_transactional(data.records):
                if request.transactional_id is not None:
                    return True
                try:
                    check_batch(data.records, 0)
                except CorruptRecordError:
                    continue
                return True
    return False


def _verify(
    broker: Broker,
    request: Request[ProduceRequest],
    transactional_id: str,
    partition: Partition,
    records: bytes | bytearray | memoryview,
) -> ErrorCode:
    """Ask the transaction's coordinator about the first batch that a transaction writes here.

    A late batch, after its transaction was aborted, would otherwise open one that is never ended
    (KIP-890).
    """
    if not broker.options.transaction_partition_verification_enable or len(records) < HEADER_SIZE:
        return ErrorCode.NONE
    producer_id, epoch = _PRODUCER.unpack_from(records, PRODUCER_ID_AT)
    if partition.log.producers.has_open_transaction(producer_id):
        return ErrorCode.NONE
    code = broker.transactions.verify(
        transactional_id, producer_id, epoch, partition.topic_partition
    )
    if code is ErrorCode.TRANSACTION_ABORTABLE and request.version < FIRST_ABORTABLE_VERSION:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _refused(broker: Broker, index: int, refusal: RequestError) -> PartitionProduceResponse:
    reason = reason_of(refusal)
    if reason is not None:
        broker.rejected(reason)
    errors = getattr(refusal, "record_errors", ())
    return PartitionProduceResponse(
        index=index,
        error_code=refusal.code,
        base_offset=-1,
        error_message=refusal.message,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=position, batch_index_error_message=reason)
            for position, reason in errors
        ],
    )
