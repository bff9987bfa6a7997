"""DescribeTransactions and ListTransactions: what administrators see of transactions.

Both show committed state, never a pending write. Which ids and topics a principal may see is up to
the host.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError
from barnabas.model.patterns import compile_pattern
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.records import partitions_by_topic
from barnabas.transactions.state import state_titled
from barnabas.transactions.transaction import Transaction
from barnabas.wire.messages import describe_transactions, list_transactions


def describe(
    coordinator: TransactionCoordinator, transactional_id: str
) -> describe_transactions.TransactionState:
    """Describe one transactional id of a coordinator."""
    code = coordinator.unavailable
    if code is ErrorCode.NONE and not transactional_id:
        code = ErrorCode.INVALID_REQUEST
    transaction = coordinator.get(transactional_id)
    if code is ErrorCode.NONE and transaction is None:
        code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    if code is not ErrorCode.NONE or transaction is None:
        return undescribed(transactional_id, code)
    return describe_transactions.TransactionState(
        error_code=ErrorCode.NONE,
        transactional_id=transactional_id,
        transaction_state=transaction.state.title,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        topics=[
            describe_transactions.TopicData(topic=topic, partitions=partitions)
            for topic, partitions in partitions_by_topic(transaction.partitions).items()
        ],
    )


def undescribed(transactional_id: str, code: ErrorCode) -> describe_transactions.TransactionState:
    """Build the error response for an id."""
    return describe_transactions.TransactionState(
        error_code=code,
        transactional_id=transactional_id,
        transaction_start_time_ms=-1,
        producer_id=-1,
        producer_epoch=-1,
    )


def list_of(
    coordinators: Iterable[TransactionCoordinator],
    request: list_transactions.ListTransactionsRequest,
    now_ms: int,
) -> list_transactions.ListTransactionsResponse:
    """List the transactional ids of a broker's coordinators that pass the request's filters."""
    machines = list(coordinators)
    loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if any(machine.unavailable is loading for machine in machines):
        return list_transactions.ListTransactionsResponse(error_code=loading)
    unknown = [title for title in request.state_filters if state_titled(title) is None]
    try:
        pattern = compile_pattern(request.transactional_id_pattern or ".*")
    except InvalidValueError:
        return list_transactions.ListTransactionsResponse(
            error_code=ErrorCode.INVALID_REGULAR_EXPRESSION
        )
    return list_transactions.ListTransactionsResponse(
        error_code=ErrorCode.NONE,
        unknown_state_filters=unknown,
        transaction_states=[
            list_transactions.TransactionState(
                transactional_id=transactional_id,
                producer_id=transaction.producer_id,
                transaction_state=transaction.state.title,
            )
            for machine in machines
            for transactional_id, transaction in machine.transactions()
            if _passes(transaction, request, now_ms) and pattern.fullmatch(transactional_id)
        ],
    )


def _passes(
    transaction: Transaction, request: list_transactions.ListTransactionsRequest, now_ms: int
) -> bool:
    """Return whether a transaction passes the filters on state, producer and duration."""
    if request.state_filters and transaction.state.title not in request.state_filters:
        return False
    if request.producer_id_filters and transaction.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter < 0:
        return True
    is_open = not transaction.state.is_idle
    return is_open and now_ms - transaction.start_ms > request.duration_filter
