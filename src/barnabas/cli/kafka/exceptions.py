"""Errors as Kafka's tools print them: the exception's name, and Kafka's text where it has one."""

from __future__ import annotations

from barnabas.model.error_codes import ErrorCode

_PACKAGE = "org.apache.kafka.common.errors."

_NAMES = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    ErrorCode.CORRUPT_MESSAGE: "CorruptRecordException",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    ErrorCode.KAFKA_STORAGE_ERROR: "KafkaStorageException",
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
    ErrorCode.UNKNOWN_SERVER_ERROR: "UnknownServerException",
}
"""Of those whose names do not follow from the names of their codes."""

_TEXTS = {
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
    ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE: "Eligible topic partition leaders are not available.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "Deleting offsets of a topic is forbidden while the "
    "consumer group is actively subscribed to it.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "No partition reassignment is in progress.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "The requested offset is not within the range of offsets "
    "maintained by the server.",
    ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE: "The preferred leader was not available.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "The transactionalId could not be found",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}


def message(failure: BaseException) -> str:
    """Return what the broker said, in one line; Kafka's text if it only sent an error code."""
    code = getattr(failure, "code", None)
    said = getattr(failure, "broker_message", None)
    if said:
        return " ".join(said.split())
    text = " ".join(str(failure).split()) or type(failure).__name__
    if isinstance(code, ErrorCode) and text.endswith(code.meaning):
        return _TEXTS.get(code, text)
    return text


def named(failure: BaseException) -> str:
    """Return the exception's full name, if Kafka has one, and what it says."""
    code = getattr(failure, "code", None)
    if not isinstance(code, ErrorCode):
        return message(failure)
    return f"{_PACKAGE}{_name(code)}: {message(failure)}"


def _name(code: ErrorCode) -> str:
    words = "".join(word.capitalize() for word in code.name.split("_"))
    return _NAMES.get(code) or f"{words}Exception"
