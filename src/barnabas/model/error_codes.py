"""The error codes of Kafka's protocol: one table for the wire, the log, brokers and clients.

Each member is an int, so it goes on the wire as it is. `retriable` is whether a client may retry
the request; `stale_metadata` is whether it should refresh its metadata first. Only 4.x clients know
codes from 128 on.
"""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """The error code of a response; 0 is success."""

    retriable: bool
    stale_metadata: bool
    meaning: str

    def __new__(cls, value: int, retry: str = "", meaning: str = "") -> ErrorCode:
        member = int.__new__(cls, value)
        member._value_ = value
        member.retriable = retry != ""
        member.stale_metadata = retry == "refresh"
        member.meaning = meaning
        return member

    @classmethod
    def of(cls, value: int) -> ErrorCode:
        """Return the member for a number off the wire; an unknown one is UNKNOWN_SERVER_ERROR."""
        return cls._value2member_map_.get(value, cls.UNKNOWN_SERVER_ERROR)  # type: ignore[return-value]

    UNKNOWN_SERVER_ERROR = (-1, "", "the broker failed unexpectedly; its log has the reason")
    NONE = (0, "", "success")
    OFFSET_OUT_OF_RANGE = (
        1,
        "",
        "the offset is outside the log: below its start, or above what may be read",
    )
    CORRUPT_MESSAGE = (
        2,
        "retry",
        "a record batch is corrupt: its CRC or size is wrong, or a compacted topic got a null key",
    )
    UNKNOWN_TOPIC_OR_PARTITION = (
        3,
        "refresh",
        "the topic or partition does not exist on this broker",
    )
    INVALID_FETCH_SIZE = (4, "", "the requested fetch size is invalid")
    LEADER_NOT_AVAILABLE = (
        5,
        "refresh",
        "no leader: an election is in progress, or the topic was just created",
    )
    NOT_LEADER_OR_FOLLOWER = (
        6,
        "refresh",
        "the broker is not the leader of the partition, or has no replica of it",
    )
    REQUEST_TIMED_OUT = (7, "retry", "the broker could not complete the request within its timeout")
    BROKER_NOT_AVAILABLE = (8, "", "the broker is not available")
    REPLICA_NOT_AVAILABLE = (9, "refresh", "the replica is not available")
    MESSAGE_TOO_LARGE = (10, "", "the batch is larger than max.message.bytes")
    STALE_CONTROLLER_EPOCH = (
        11,
        "",
        "the request has an older controller epoch than the broker knows",
    )
    OFFSET_METADATA_TOO_LARGE = (
        12,
        "",
        "the metadata of the commit is larger than offset.metadata.max.bytes",
    )
    NETWORK_EXCEPTION = (13, "refresh", "the connection was lost before the response arrived")
    COORDINATOR_LOAD_IN_PROGRESS = (14, "retry", "the coordinator is still loading its partition")
    COORDINATOR_NOT_AVAILABLE = (
        15,
        "retry",
        "no coordinator: its internal topic is missing or offline, or its write timed out",
    )
    NOT_COORDINATOR = (16, "retry", "the broker is no longer the coordinator; look it up again")
    INVALID_TOPIC_EXCEPTION = (
        17,
        "",
        "the topic name is invalid, or the topic is internal and cannot be written to",
    )
    RECORD_LIST_TOO_LARGE = (18, "", "the batch is larger than segment.bytes")
    NOT_ENOUGH_REPLICAS = (
        19,
        "retry",
        "fewer in-sync replicas than min.insync.replicas; nothing was written",
    )
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        "retry",
        "written, but the ISR shrank below min.insync.replicas before it was replicated",
    )
    INVALID_REQUIRED_ACKS = (21, "", "acks must be -1, 0 or 1")
    ILLEGAL_GENERATION = (22, "", "the request has another generation than the group")
    INCONSISTENT_GROUP_PROTOCOL = (
        23,
        "",
        "the protocol type or assignors match no other member of the group, or are empty",
    )
    INVALID_GROUP_ID = (24, "", "the group id must not be empty")
    UNKNOWN_MEMBER_ID = (25, "", "the group has no member with this id")
    INVALID_SESSION_TIMEOUT = (
        26,
        "",
        "the session timeout is not within the limits group.min/max.session.timeout.ms",
    )
    REBALANCE_IN_PROGRESS = (27, "", "the group is rebalancing; members must rejoin")
    INVALID_COMMIT_OFFSET_SIZE = (28, "", "the offset commit is too large for the log")
    TOPIC_AUTHORIZATION_FAILED = (29, "", "access to the topic is denied")
    GROUP_AUTHORIZATION_FAILED = (30, "", "access to the group is denied")
    CLUSTER_AUTHORIZATION_FAILED = (31, "", "access to the cluster is denied")
    INVALID_TIMESTAMP = (
        32,
        "",
        "a record timestamp is outside the allowed range, or the batch claims LogAppendTime",
    )
    UNSUPPORTED_SASL_MECHANISM = (33, "", "the SASL mechanism is not enabled on the broker")
    ILLEGAL_SASL_STATE = (34, "", "the request is not allowed at this step of SASL authentication")
    UNSUPPORTED_VERSION = (35, "", "the API version is not supported")
    TOPIC_ALREADY_EXISTS = (36, "", "the topic already exists")
    INVALID_PARTITIONS = (
        37,
        "",
        "the partition count must be at least 1, and larger than the current one",
    )
    INVALID_REPLICATION_FACTOR = (
        38,
        "",
        "the replication factor must be at least 1, and at most the number of live brokers",
    )
    INVALID_REPLICA_ASSIGNMENT = (39, "", "the replica assignment is invalid")
    INVALID_CONFIG = (40, "", "a config has an unknown name or an invalid value")
    NOT_CONTROLLER = (41, "retry", "the broker is not the controller")
    INVALID_REQUEST = (42, "", "the request is malformed, or contradicts itself")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (
        43,
        "",
        "the message format of the topic is too old for this request",
    )
    POLICY_VIOLATION = (44, "", "a policy of the broker rejected the request")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (
        45,
        "",
        "the sequence number of the batch does not follow the last one of its producer",
    )
    DUPLICATE_SEQUENCE_NUMBER = (46, "", "a batch with this sequence number was already written")
    INVALID_PRODUCER_EPOCH = (47, "", "a newer epoch of the producer has fenced this one")
    INVALID_TXN_STATE = (
        48,
        "",
        "the request is not allowed in the current state of the transaction",
    )
    INVALID_PRODUCER_ID_MAPPING = (
        49,
        "",
        "the producer id is unknown, or does not belong to the transactional id",
    )
    INVALID_TRANSACTION_TIMEOUT = (
        50,
        "",
        "the transaction timeout must be from 1 to transaction.max.timeout.ms",
    )
    CONCURRENT_TRANSACTIONS = (
        51,
        "retry",
        "another operation of this transactional id is still in progress",
    )
    TRANSACTION_COORDINATOR_FENCED = (52, "", "a newer coordinator epoch has fenced this marker")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (53, "", "access to the transactional id is denied")
    SECURITY_DISABLED = (54, "", "the broker has no authorizer")
    OPERATION_NOT_ATTEMPTED = (55, "", "not attempted, because another part of the request failed")
    KAFKA_STORAGE_ERROR = (56, "refresh", "the log directory has failed")
    LOG_DIR_NOT_FOUND = (57, "", "the broker has no such log directory")
    SASL_AUTHENTICATION_FAILED = (58, "", "the credentials were rejected")
    UNKNOWN_PRODUCER_ID = (59, "", "the broker has no state of this producer id")
    REASSIGNMENT_IN_PROGRESS = (60, "", "the partition is being reassigned")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, "", "delegation tokens are disabled")
    DELEGATION_TOKEN_NOT_FOUND = (62, "", "the delegation token does not exist")
    DELEGATION_TOKEN_OWNER_MISMATCH = (
        63,
        "",
        "only the owner or a renewer of a delegation token may use it",
    )
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        "",
        "requests about delegation tokens are not allowed on this connection",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (65, "", "access to the delegation token is denied")
    DELEGATION_TOKEN_EXPIRED = (66, "", "the delegation token has expired")
    INVALID_PRINCIPAL_TYPE = (67, "", "the principal type must be User")
    NON_EMPTY_GROUP = (68, "", "the group still has members")
    GROUP_ID_NOT_FOUND = (69, "", "the group does not exist")
    FETCH_SESSION_ID_NOT_FOUND = (
        70,
        "retry",
        "the fetch session was evicted; a full fetch starts a new one",
    )
    INVALID_FETCH_SESSION_EPOCH = (
        71,
        "retry",
        "the epoch of the fetch session is not the next one",
    )
    LISTENER_NOT_FOUND = (
        72,
        "refresh",
        "the leader has no listener of the name that the client uses",
    )
    TOPIC_DELETION_DISABLED = (73, "", "topics cannot be deleted: delete.topic.enable=false")
    FENCED_LEADER_EPOCH = (74, "refresh", "the request has an older leader epoch than the broker")
    UNKNOWN_LEADER_EPOCH = (75, "retry", "the request has a newer leader epoch than the broker")
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        "",
        "the API version is too old for the codec: zstd needs Fetch v10 and Produce v7",
    )
    STALE_BROKER_EPOCH = (77, "", "the broker has registered again since; its old epoch is fenced")
    OFFSET_NOT_AVAILABLE = (78, "retry", "the new leader does not know the high watermark yet")
    MEMBER_ID_REQUIRED = (79, "", "join again with the member id in the response")
    PREFERRED_LEADER_NOT_AVAILABLE = (
        80,
        "refresh",
        "the preferred replica is not alive, or not in sync",
    )
    GROUP_MAX_SIZE_REACHED = (81, "", "the group has group.max.size members already")
    FENCED_INSTANCE_ID = (82, "", "another member has taken over this group.instance.id")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, "refresh", "no replica can become leader")
    ELECTION_NOT_NEEDED = (84, "refresh", "the partition already has this leader")
    NO_REASSIGNMENT_IN_PROGRESS = (85, "", "the partition is not being reassigned")
    GROUP_SUBSCRIBED_TO_TOPIC = (86, "", "members of the group are subscribed to the topic")
    INVALID_RECORD = (87, "", "the broker rejected a record as invalid")
    UNSTABLE_OFFSET_COMMIT = (
        88,
        "retry",
        "offsets of the group are still part of an open transaction",
    )
    THROTTLING_QUOTA_EXCEEDED = (
        89,
        "retry",
        "the controller mutation quota is exceeded; retry after the throttle time",
    )
    PRODUCER_FENCED = (
        90,
        "",
        "a newer producer with the same transactional id has fenced this one",
    )
    RESOURCE_NOT_FOUND = (91, "", "the resource does not exist")
    DUPLICATE_RESOURCE = (92, "", "the request names a resource twice")
    UNACCEPTABLE_CREDENTIAL = (
        93,
        "",
        "the credential is invalid, such as too few SCRAM iterations",
    )
    INCONSISTENT_VOTER_SET = (94, "", "KRaft: the voters of the two sides differ")
    INVALID_UPDATE_VERSION = (
        95,
        "",
        "the partition has changed since: its epoch is newer than that of the request",
    )
    FEATURE_UPDATE_FAILED = (96, "", "a feature could not be finalized")
    PRINCIPAL_DESERIALIZATION_FAILURE = (
        97,
        "",
        "the principal in a forwarded request is unreadable",
    )
    SNAPSHOT_NOT_FOUND = (98, "", "KRaft: the snapshot does not exist")
    POSITION_OUT_OF_RANGE = (99, "", "KRaft: the position is outside the snapshot")
    UNKNOWN_TOPIC_ID = (100, "refresh", "no topic with this id exists on this broker")
    DUPLICATE_BROKER_REGISTRATION = (101, "", "KRaft: a live broker has registered under this id")
    BROKER_ID_NOT_REGISTERED = (102, "", "KRaft: the broker is not registered")
    INCONSISTENT_TOPIC_ID = (103, "refresh", "the log of the partition has another topic id")
    INCONSISTENT_CLUSTER_ID = (104, "", "the cluster has another id")
    TRANSACTIONAL_ID_NOT_FOUND = (105, "", "the transactional id does not exist")
    FETCH_SESSION_TOPIC_ID_ERROR = (
        106,
        "retry",
        "the fetch session switched between topic names and topic ids",
    )
    INELIGIBLE_REPLICA = (107, "", "a proposed in-sync replica is fenced or shutting down")
    NEW_LEADER_ELECTED = (108, "", "the change was applied, and elected a new leader")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, "", "the offset is in remote storage only")
    FENCED_MEMBER_EPOCH = (110, "", "the member epoch is fenced; rejoin with epoch 0")
    UNRELEASED_INSTANCE_ID = (111, "", "another member still uses this group.instance.id")
    UNSUPPORTED_ASSIGNOR = (112, "", "the broker does not have this assignor")
    STALE_MEMBER_EPOCH = (113, "", "the request has an old member epoch")
    MISMATCHED_ENDPOINT_TYPE = (
        114,
        "",
        "the request is for a controller and was sent to a broker, or the reverse",
    )
    UNSUPPORTED_ENDPOINT_TYPE = (115, "", "the endpoint type is not supported")
    UNKNOWN_CONTROLLER_ID = (116, "", "KRaft: the controller id is unknown")
    UNKNOWN_SUBSCRIPTION_ID = (117, "", "the telemetry subscription has changed; request it again")
    TELEMETRY_TOO_LARGE = (118, "", "the telemetry push is larger than telemetry.max.bytes")
    INVALID_REGISTRATION = (119, "", "KRaft: the registration of the broker was rejected")
    TRANSACTION_ABORTABLE = (
        120,
        "",
        "the transaction failed and must be aborted; the producer can then continue",
    )
    INVALID_RECORD_STATE = (121, "", "share groups: the record cannot be acknowledged in its state")
    SHARE_SESSION_NOT_FOUND = (122, "retry", "share groups: the session does not exist")
    INVALID_SHARE_SESSION_EPOCH = (
        123,
        "retry",
        "share groups: the epoch of the session is not the next one",
    )
    FENCED_STATE_EPOCH = (124, "", "share groups: the state epoch is fenced")
    INVALID_VOTER_KEY = (125, "", "KRaft: the key of the voter is wrong")
    DUPLICATE_VOTER = (126, "", "KRaft: the voter already exists")
    VOTER_NOT_FOUND = (127, "", "KRaft: the voter does not exist")
    INVALID_REGULAR_EXPRESSION = (
        128,
        "",
        "the subscribed pattern is not a valid regular expression",
    )
    REBOOTSTRAP_REQUIRED = (129, "", "the client must connect to bootstrap.servers again")
    STREAMS_INVALID_TOPOLOGY = (130, "", "streams groups: the topology is invalid")
    STREAMS_INVALID_TOPOLOGY_EPOCH = (131, "", "streams groups: the topology epoch is invalid")
    STREAMS_TOPOLOGY_FENCED = (132, "", "streams groups: a newer topology has fenced this one")
    SHARE_SESSION_LIMIT_REACHED = (133, "retry", "share groups: the broker has too many sessions")
