"""One exception class per error code, under the names that Python's Kafka clients gave them.

A client turns the code of an answer into an exception with `request_error`; its class is the one of
the code, so callers catch what they mean. Classes of codes that are worth another attempt are also
`RetriableError`s, and `InvalidMetadataError`s where new metadata is needed first. `errno`,
`message` and `description` can be read off the class as well as off an exception.

Brokers raise plain `RequestError(code)`: they only need the code.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import (
    CorruptRecordError,
    InvalidMetadataError,
    RequestError,
    RetriableError,
)


class CodedError(RequestError):
    """An answer with the code that its class stands for."""

    code: ErrorCode
    errno: ClassVar[int]
    description: ClassVar[str]
    message: str
    retriable: bool
    invalid_metadata: bool

    def __init_subclass__(cls, code: ErrorCode | None = None) -> None:
        if code is None:  # a subclass says more about the code of its parent
            return
        cls.code = code
        cls.errno = int(code)
        cls.message = code.name
        cls.description = code.meaning
        cls.retriable = code.retriable
        cls.invalid_metadata = code.stale_metadata
        cls.__doc__ = f"Error {int(code)}: {code.meaning}."

    def __init__(self, message: str | None = None) -> None:
        Exception.__init__(self, message or self.code.meaning)
        if message is not None:
            self.message = message


class AuthorizationError(CodedError):
    """An ACL denies what was asked for."""


class UnknownError(CodedError, code=ErrorCode.UNKNOWN_SERVER_ERROR):
    pass


class OffsetOutOfRangeError(CodedError, code=ErrorCode.OFFSET_OUT_OF_RANGE):
    pass


class CorruptMessageError(
    RetriableError, CodedError, CorruptRecordError, code=ErrorCode.CORRUPT_MESSAGE
):
    pass


class UnknownTopicOrPartitionError(
    InvalidMetadataError, CodedError, code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
):
    pass


class InvalidFetchRequestError(CodedError, code=ErrorCode.INVALID_FETCH_SIZE):
    pass


class LeaderNotAvailableError(
    InvalidMetadataError, CodedError, code=ErrorCode.LEADER_NOT_AVAILABLE
):
    pass


class NotLeaderForPartitionError(
    InvalidMetadataError, CodedError, code=ErrorCode.NOT_LEADER_OR_FOLLOWER
):
    pass


class RequestTimedOutError(RetriableError, CodedError, code=ErrorCode.REQUEST_TIMED_OUT):
    pass


class BrokerNotAvailableError(CodedError, code=ErrorCode.BROKER_NOT_AVAILABLE):
    pass


class ReplicaNotAvailableError(
    InvalidMetadataError, CodedError, code=ErrorCode.REPLICA_NOT_AVAILABLE
):
    pass


class MessageSizeTooLargeError(CodedError, code=ErrorCode.MESSAGE_TOO_LARGE):
    pass


class StaleControllerEpochError(CodedError, code=ErrorCode.STALE_CONTROLLER_EPOCH):
    pass


class OffsetMetadataTooLargeError(CodedError, code=ErrorCode.OFFSET_METADATA_TOO_LARGE):
    pass


class NetworkExceptionError(InvalidMetadataError, CodedError, code=ErrorCode.NETWORK_EXCEPTION):
    pass


class CoordinatorLoadInProgressError(
    RetriableError, CodedError, code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
):
    pass


class CoordinatorNotAvailableError(
    RetriableError, CodedError, code=ErrorCode.COORDINATOR_NOT_AVAILABLE
):
    pass


class NotCoordinatorError(RetriableError, CodedError, code=ErrorCode.NOT_COORDINATOR):
    pass


class InvalidTopicError(CodedError, code=ErrorCode.INVALID_TOPIC_EXCEPTION):
    pass


class RecordListTooLargeError(CodedError, code=ErrorCode.RECORD_LIST_TOO_LARGE):
    pass


class NotEnoughReplicasError(RetriableError, CodedError, code=ErrorCode.NOT_ENOUGH_REPLICAS):
    pass


class NotEnoughReplicasAfterAppendError(
    RetriableError, CodedError, code=ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
):
    pass


class InvalidRequiredAcksError(CodedError, code=ErrorCode.INVALID_REQUIRED_ACKS):
    pass


class IllegalGenerationError(CodedError, code=ErrorCode.ILLEGAL_GENERATION):
    pass


class InconsistentGroupProtocolError(CodedError, code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL):
    pass


class InvalidGroupIdError(CodedError, code=ErrorCode.INVALID_GROUP_ID):
    pass


class UnknownMemberIdError(CodedError, code=ErrorCode.UNKNOWN_MEMBER_ID):
    pass


class InvalidSessionTimeoutError(CodedError, code=ErrorCode.INVALID_SESSION_TIMEOUT):
    pass


class RebalanceInProgressError(CodedError, code=ErrorCode.REBALANCE_IN_PROGRESS):
    pass


class InvalidCommitOffsetSizeError(CodedError, code=ErrorCode.INVALID_COMMIT_OFFSET_SIZE):
    pass


class TopicAuthorizationFailedError(AuthorizationError, code=ErrorCode.TOPIC_AUTHORIZATION_FAILED):
    pass


class GroupAuthorizationFailedError(AuthorizationError, code=ErrorCode.GROUP_AUTHORIZATION_FAILED):
    pass


class ClusterAuthorizationFailedError(
    AuthorizationError, code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED
):
    pass


class InvalidTimestampError(CodedError, code=ErrorCode.INVALID_TIMESTAMP):
    pass


class UnsupportedSaslMechanismError(CodedError, code=ErrorCode.UNSUPPORTED_SASL_MECHANISM):
    pass


class IllegalSaslStateError(CodedError, code=ErrorCode.ILLEGAL_SASL_STATE):
    pass


class UnsupportedVersionError(CodedError, code=ErrorCode.UNSUPPORTED_VERSION):
    pass


class TopicAlreadyExistsError(CodedError, code=ErrorCode.TOPIC_ALREADY_EXISTS):
    pass


class InvalidPartitionsError(CodedError, code=ErrorCode.INVALID_PARTITIONS):
    pass


class InvalidReplicationFactorError(CodedError, code=ErrorCode.INVALID_REPLICATION_FACTOR):
    pass


class InvalidReplicationAssignmentError(CodedError, code=ErrorCode.INVALID_REPLICA_ASSIGNMENT):
    pass


class InvalidConfigurationError(CodedError, code=ErrorCode.INVALID_CONFIG):
    pass


class NotControllerError(RetriableError, CodedError, code=ErrorCode.NOT_CONTROLLER):
    pass


class InvalidRequestError(CodedError, code=ErrorCode.INVALID_REQUEST):
    pass


class UnsupportedForMessageFormatError(CodedError, code=ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT):
    pass


class PolicyViolationError(CodedError, code=ErrorCode.POLICY_VIOLATION):
    pass


class OutOfOrderSequenceNumberError(CodedError, code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
    pass


class DuplicateSequenceNumberError(CodedError, code=ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
    pass


class InvalidProducerEpochError(CodedError, code=ErrorCode.INVALID_PRODUCER_EPOCH):
    pass


class InvalidTxnStateError(CodedError, code=ErrorCode.INVALID_TXN_STATE):
    pass


class InvalidProducerIdMappingError(CodedError, code=ErrorCode.INVALID_PRODUCER_ID_MAPPING):
    pass


class InvalidTransactionTimeoutError(CodedError, code=ErrorCode.INVALID_TRANSACTION_TIMEOUT):
    pass


class ConcurrentTransactionsError(
    RetriableError, CodedError, code=ErrorCode.CONCURRENT_TRANSACTIONS
):
    pass


class TransactionCoordinatorFencedError(CodedError, code=ErrorCode.TRANSACTION_COORDINATOR_FENCED):
    pass


class TransactionalIdAuthorizationFailedError(
    AuthorizationError, code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
):
    pass


class SecurityDisabledError(CodedError, code=ErrorCode.SECURITY_DISABLED):
    pass


class OperationNotAttemptedError(CodedError, code=ErrorCode.OPERATION_NOT_ATTEMPTED):
    pass


class KafkaStorageError(InvalidMetadataError, CodedError, code=ErrorCode.KAFKA_STORAGE_ERROR):
    pass


class LogDirNotFoundError(CodedError, code=ErrorCode.LOG_DIR_NOT_FOUND):
    pass


class SaslAuthenticationFailedError(CodedError, code=ErrorCode.SASL_AUTHENTICATION_FAILED):
    pass


class UnknownProducerIdError(CodedError, code=ErrorCode.UNKNOWN_PRODUCER_ID):
    pass


class ReassignmentInProgressError(CodedError, code=ErrorCode.REASSIGNMENT_IN_PROGRESS):
    pass


class DelegationTokenAuthDisabledError(CodedError, code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED):
    pass


class DelegationTokenNotFoundError(CodedError, code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND):
    pass


class DelegationTokenOwnerMismatchError(CodedError, code=ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH):
    pass


class DelegationTokenRequestNotAllowedError(
    CodedError, code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
):
    pass


class DelegationTokenAuthorizationFailedError(
    AuthorizationError, code=ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
):
    pass


class DelegationTokenExpiredError(CodedError, code=ErrorCode.DELEGATION_TOKEN_EXPIRED):
    pass


class InvalidPrincipalTypeError(CodedError, code=ErrorCode.INVALID_PRINCIPAL_TYPE):
    pass


class NonEmptyGroupError(CodedError, code=ErrorCode.NON_EMPTY_GROUP):
    pass


class GroupIdNotFoundError(CodedError, code=ErrorCode.GROUP_ID_NOT_FOUND):
    pass


class FetchSessionIdNotFoundError(
    RetriableError, CodedError, code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND
):
    pass


class InvalidFetchSessionEpochError(
    RetriableError, CodedError, code=ErrorCode.INVALID_FETCH_SESSION_EPOCH
):
    pass


class ListenerNotFoundError(InvalidMetadataError, CodedError, code=ErrorCode.LISTENER_NOT_FOUND):
    pass


class TopicDeletionDisabledError(CodedError, code=ErrorCode.TOPIC_DELETION_DISABLED):
    pass


class FencedLeaderEpochError(InvalidMetadataError, CodedError, code=ErrorCode.FENCED_LEADER_EPOCH):
    pass


class UnknownLeaderEpochError(RetriableError, CodedError, code=ErrorCode.UNKNOWN_LEADER_EPOCH):
    pass


class UnsupportedCompressionTypeError(CodedError, code=ErrorCode.UNSUPPORTED_COMPRESSION_TYPE):
    pass


class StaleBrokerEpochError(CodedError, code=ErrorCode.STALE_BROKER_EPOCH):
    pass


class OffsetNotAvailableError(RetriableError, CodedError, code=ErrorCode.OFFSET_NOT_AVAILABLE):
    pass


class MemberIdRequiredError(CodedError, code=ErrorCode.MEMBER_ID_REQUIRED):
    pass


class PreferredLeaderNotAvailableError(
    InvalidMetadataError, CodedError, code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
):
    pass


class GroupMaxSizeReachedError(CodedError, code=ErrorCode.GROUP_MAX_SIZE_REACHED):
    pass


class FencedInstanceIdError(CodedError, code=ErrorCode.FENCED_INSTANCE_ID):
    pass


class EligibleLeadersNotAvailableError(
    InvalidMetadataError, CodedError, code=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
):
    pass


class ElectionNotNeededError(InvalidMetadataError, CodedError, code=ErrorCode.ELECTION_NOT_NEEDED):
    pass


class NoReassignmentInProgressError(CodedError, code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS):
    pass


class GroupSubscribedToTopicError(CodedError, code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC):
    pass


class InvalidRecordError(CodedError, code=ErrorCode.INVALID_RECORD):
    pass


class UnstableOffsetCommitError(RetriableError, CodedError, code=ErrorCode.UNSTABLE_OFFSET_COMMIT):
    pass


class ThrottlingQuotaExceededError(
    RetriableError, CodedError, code=ErrorCode.THROTTLING_QUOTA_EXCEEDED
):
    pass


class ProducerFencedError(CodedError, code=ErrorCode.PRODUCER_FENCED):
    pass


class ResourceNotFoundError(CodedError, code=ErrorCode.RESOURCE_NOT_FOUND):
    pass


class DuplicateResourceError(CodedError, code=ErrorCode.DUPLICATE_RESOURCE):
    pass


class UnacceptableCredentialError(CodedError, code=ErrorCode.UNACCEPTABLE_CREDENTIAL):
    pass


class InconsistentVoterSetError(CodedError, code=ErrorCode.INCONSISTENT_VOTER_SET):
    pass


class InvalidUpdateVersionError(CodedError, code=ErrorCode.INVALID_UPDATE_VERSION):
    pass


class FeatureUpdateFailedError(CodedError, code=ErrorCode.FEATURE_UPDATE_FAILED):
    pass


class PrincipalDeserializationFailureError(
    CodedError, code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
):
    pass


class SnapshotNotFoundError(CodedError, code=ErrorCode.SNAPSHOT_NOT_FOUND):
    pass


class PositionOutOfRangeError(CodedError, code=ErrorCode.POSITION_OUT_OF_RANGE):
    pass


class UnknownTopicIdError(InvalidMetadataError, CodedError, code=ErrorCode.UNKNOWN_TOPIC_ID):
    pass


class DuplicateBrokerRegistrationError(CodedError, code=ErrorCode.DUPLICATE_BROKER_REGISTRATION):
    pass


class BrokerIdNotRegisteredError(CodedError, code=ErrorCode.BROKER_ID_NOT_REGISTERED):
    pass


class InconsistentTopicIdError(
    InvalidMetadataError, CodedError, code=ErrorCode.INCONSISTENT_TOPIC_ID
):
    pass


class InconsistentClusterIdError(CodedError, code=ErrorCode.INCONSISTENT_CLUSTER_ID):
    pass


class TransactionalIdNotFoundError(CodedError, code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
    pass


class FetchSessionTopicIdError(
    RetriableError, CodedError, code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
):
    pass


class IneligibleReplicaError(CodedError, code=ErrorCode.INELIGIBLE_REPLICA):
    pass


class NewLeaderElectedError(CodedError, code=ErrorCode.NEW_LEADER_ELECTED):
    pass


class OffsetMovedToTieredStorageError(CodedError, code=ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE):
    pass


class FencedMemberEpochError(CodedError, code=ErrorCode.FENCED_MEMBER_EPOCH):
    pass


class UnreleasedInstanceIdError(CodedError, code=ErrorCode.UNRELEASED_INSTANCE_ID):
    pass


class UnsupportedAssignorError(CodedError, code=ErrorCode.UNSUPPORTED_ASSIGNOR):
    pass


class StaleMemberEpochError(CodedError, code=ErrorCode.STALE_MEMBER_EPOCH):
    pass


class MismatchedEndpointTypeError(CodedError, code=ErrorCode.MISMATCHED_ENDPOINT_TYPE):
    pass


class UnsupportedEndpointTypeError(CodedError, code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE):
    pass


class UnknownControllerIdError(CodedError, code=ErrorCode.UNKNOWN_CONTROLLER_ID):
    pass


class UnknownSubscriptionIdError(CodedError, code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID):
    pass


class TelemetryTooLargeError(CodedError, code=ErrorCode.TELEMETRY_TOO_LARGE):
    pass


class InvalidRegistrationError(CodedError, code=ErrorCode.INVALID_REGISTRATION):
    pass


class TransactionAbortableError(CodedError, code=ErrorCode.TRANSACTION_ABORTABLE):
    pass


class InvalidRecordStateError(CodedError, code=ErrorCode.INVALID_RECORD_STATE):
    pass


class ShareSessionNotFoundError(RetriableError, CodedError, code=ErrorCode.SHARE_SESSION_NOT_FOUND):
    pass


class InvalidShareSessionEpochError(
    RetriableError, CodedError, code=ErrorCode.INVALID_SHARE_SESSION_EPOCH
):
    pass


class FencedStateEpochError(CodedError, code=ErrorCode.FENCED_STATE_EPOCH):
    pass


class InvalidVoterKeyError(CodedError, code=ErrorCode.INVALID_VOTER_KEY):
    pass


class DuplicateVoterError(CodedError, code=ErrorCode.DUPLICATE_VOTER):
    pass


class VoterNotFoundError(CodedError, code=ErrorCode.VOTER_NOT_FOUND):
    pass


class InvalidRegularExpressionError(CodedError, code=ErrorCode.INVALID_REGULAR_EXPRESSION):
    pass


class RebootstrapRequiredError(CodedError, code=ErrorCode.REBOOTSTRAP_REQUIRED):
    pass


class StreamsInvalidTopologyError(CodedError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY):
    pass


class StreamsInvalidTopologyEpochError(CodedError, code=ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH):
    pass


class StreamsTopologyFencedError(CodedError, code=ErrorCode.STREAMS_TOPOLOGY_FENCED):
    pass


class ShareSessionLimitReachedError(
    RetriableError, CodedError, code=ErrorCode.SHARE_SESSION_LIMIT_REACHED
):
    pass


def _by_code(parent: type[CodedError]) -> dict[ErrorCode, type[CodedError]]:
    found: dict[ErrorCode, type[CodedError]] = {}
    for child in parent.__subclasses__():
        found |= {child.code: child} if hasattr(child, "code") else _by_code(child)
    return found


REQUEST_ERRORS: Mapping[ErrorCode, type[CodedError]] = MappingProxyType(_by_code(CodedError))
"""The class of each code but NONE."""


def request_error(code: int, message: str | None = None) -> CodedError:
    """Return the exception for an error code; an unknown code is an UnknownError that names it."""
    known = ErrorCode.of(code)
    assert known is not ErrorCode.NONE, "success is not an error"
    if known != code:
        message = f"error code {code}: {message or 'this client does not know it'}"
    return REQUEST_ERRORS[known](message)
