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

    UNKNOWN_SERVER_ERROR = (-1, "", "the broker failed unexpectedly")
    NONE = (0, "", "success")
    OFFSET_OUT_OF_RANGE = (1, "", "fetch/list offset below log start or above the readable end")
    CORRUPT_MESSAGE = (
        2,
        "retry",
        "CRC mismatch, bad size, null key on compacted topic (old), otherwise corrupt",
    )
    UNKNOWN_TOPIC_OR_PARTITION = (
        3,
        "refresh",
        "this broker does not know/host the topic partition",
    )
    INVALID_FETCH_SIZE = (4, "", "requested fetch size invalid")
    LEADER_NOT_AVAILABLE = (5, "refresh", "no leader (election in progress, or topic just created)")
    NOT_LEADER_OR_FOLLOWER = (
        6,
        "refresh",
        "broker is not leader (leader-only call) / not a replica (any-replica call)",
    )
    REQUEST_TIMED_OUT = (7, "retry", "server-side wait (acks, admin operation) timed out")
    BROKER_NOT_AVAILABLE = (8, "", "broker not available (legacy; tools only)")
    REPLICA_NOT_AVAILABLE = (
        9,
        "refresh",
        "replica not available; expected transiently in metadata/AlterReplicaLogDirs",
    )
    MESSAGE_TOO_LARGE = (10, "", "batch larger than max.message.bytes")
    STALE_CONTROLLER_EPOCH = (11, "", "controller epoch in request older than the broker has seen")
    OFFSET_METADATA_TOO_LARGE = (
        12,
        "",
        "commit metadata string longer than offset.metadata.max.bytes",
    )
    NETWORK_EXCEPTION = (13, "refresh", "connection lost before the response (client-side)")
    COORDINATOR_LOAD_IN_PROGRESS = (14, "retry", "coordinator still reading its log partition")
    COORDINATOR_NOT_AVAILABLE = (
        15,
        "retry",
        "no coordinator (internal topic missing/offline), or its append timed out",
    )
    NOT_COORDINATOR = (16, "retry", "broker does not lead the coordinator partition; rediscover")
    INVALID_TOPIC_EXCEPTION = (17, "", "illegal topic name, or write to internal topic")
    RECORD_LIST_TOO_LARGE = (18, "", "batch bigger than segment.bytes")
    NOT_ENOUGH_REPLICAS = (
        19,
        "retry",
        "acks=all and ISR smaller than min.insync.replicas; nothing written",
    )
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        "retry",
        "appended but ISR shrank below minimum before commit",
    )
    INVALID_REQUIRED_ACKS = (21, "", "acks not in -1,0,1")
    ILLEGAL_GENERATION = (22, "", "group generation in request differs")
    INCONSISTENT_GROUP_PROTOCOL = (
        23,
        "",
        "protocol type/list incompatible with members, or empty for a first member",
    )
    INVALID_GROUP_ID = (24, "", "empty/null group id where not allowed")
    UNKNOWN_MEMBER_ID = (25, "", "member id not in group")
    INVALID_SESSION_TIMEOUT = (26, "", "outside group.min/max.session.timeout.ms")
    REBALANCE_IN_PROGRESS = (
        27,
        "",
        "rejoin needed (also: commit attempted while CompletingRebalance)",
    )
    INVALID_COMMIT_OFFSET_SIZE = (28, "", "offset commit record too large for the log")
    TOPIC_AUTHORIZATION_FAILED = (29, "", "ACL denies topic")
    GROUP_AUTHORIZATION_FAILED = (30, "", "ACL denies group")
    CLUSTER_AUTHORIZATION_FAILED = (31, "", "ACL denies cluster action")
    INVALID_TIMESTAMP = (
        32,
        "",
        "record timestamp outside allowed window, or producer set LogAppendTime bit",
    )
    UNSUPPORTED_SASL_MECHANISM = (
        33,
        "",
        "mechanism not enabled (the response lists the enabled ones)",
    )
    ILLEGAL_SASL_STATE = (34, "", "request not legal in the SASL state")
    UNSUPPORTED_VERSION = (35, "", "api version not supported")
    TOPIC_ALREADY_EXISTS = (36, "", "create of existing topic")
    INVALID_PARTITIONS = (37, "", "partition count < 1, or not larger than the current one")
    INVALID_REPLICATION_FACTOR = (38, "", "< 1 or more than live brokers")
    INVALID_REPLICA_ASSIGNMENT = (39, "", "manual assignment malformed")
    INVALID_CONFIG = (40, "", "bad config name/value")
    NOT_CONTROLLER = (41, "retry", "sent to a broker that is not controller")
    INVALID_REQUEST = (42, "", "malformed / contradictory request")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (43, "", "topic's on-disk format too old for this call")
    POLICY_VIOLATION = (44, "", "rejected by the create or alter policy")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (45, "", "idempotent sequence gap")
    DUPLICATE_SEQUENCE_NUMBER = (
        46,
        "",
        "duplicate sequence (clients treat it as success; 3.x brokers return success themselves)",
    )
    INVALID_PRODUCER_EPOCH = (47, "", "epoch older than log/coordinator has")
    INVALID_TXN_STATE = (48, "", "transactional call illegal in the current state")
    INVALID_PRODUCER_ID_MAPPING = (
        49,
        "",
        "producer id does not match the transactional id, or id unknown",
    )
    INVALID_TRANSACTION_TIMEOUT = (50, "", "timeout > transaction.max.timeout.ms or <= 0")
    CONCURRENT_TRANSACTIONS = (
        51,
        "retry",
        "previous operation on this transactional id still pending; retry",
    )
    TRANSACTION_COORDINATOR_FENCED = (52, "", "marker from an outdated coordinator epoch")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (53, "", "ACL denies transactional id")
    SECURITY_DISABLED = (54, "", "no authorizer configured")
    OPERATION_NOT_ATTEMPTED = (55, "", "batch sibling failed, this one was skipped")
    KAFKA_STORAGE_ERROR = (56, "refresh", "log directory I/O failure")
    LOG_DIR_NOT_FOUND = (57, "", "log dir path not configured")
    SASL_AUTHENTICATION_FAILED = (58, "", "bad credentials")
    UNKNOWN_PRODUCER_ID = (
        59,
        "",
        "no state for producer id (old brokers; 3.x brokers accept any first sequence instead)",
    )
    REASSIGNMENT_IN_PROGRESS = (60, "", "partition being reassigned")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, "", "feature off")
    DELEGATION_TOKEN_NOT_FOUND = (62, "", "unknown token")
    DELEGATION_TOKEN_OWNER_MISMATCH = (63, "", "caller neither owner nor renewer")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (64, "", "channel type not allowed for token calls")
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (65, "", "ACL denies token")
    DELEGATION_TOKEN_EXPIRED = (66, "", "token expired")
    INVALID_PRINCIPAL_TYPE = (67, "", "principal type other than User")
    NON_EMPTY_GROUP = (68, "", "delete of a group with members")
    GROUP_ID_NOT_FOUND = (69, "", "no such group")
    FETCH_SESSION_ID_NOT_FOUND = (70, "retry", "session evicted; client starts a full fetch")
    INVALID_FETCH_SESSION_EPOCH = (71, "retry", "session epoch not the expected next")
    LISTENER_NOT_FOUND = (72, "refresh", "leader has no endpoint for the client's listener")
    TOPIC_DELETION_DISABLED = (73, "", "delete.topic.enable=false")
    FENCED_LEADER_EPOCH = (74, "refresh", "request leader epoch older than broker's")
    UNKNOWN_LEADER_EPOCH = (75, "retry", "request leader epoch newer than broker's")
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        "",
        "client version too old for the codec (zstd below Fetch v10 / Produce v7)",
    )
    STALE_BROKER_EPOCH = (77, "", "broker epoch (registration czxid) outdated")
    OFFSET_NOT_AVAILABLE = (
        78,
        "retry",
        "new leader's HW not yet caught up with its epoch start; retry ListOffsets",
    )
    MEMBER_ID_REQUIRED = (79, "", "JoinGroup v4+: retry with the member id returned")
    PREFERRED_LEADER_NOT_AVAILABLE = (80, "refresh", "preferred replica dead or not in ISR")
    GROUP_MAX_SIZE_REACHED = (81, "", "group.max.size hit")
    FENCED_INSTANCE_ID = (82, "", "static instance now owned by another member id")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, "refresh", "no replica can become leader")
    ELECTION_NOT_NEEDED = (84, "refresh", "leader already the preferred / exists")
    NO_REASSIGNMENT_IN_PROGRESS = (85, "", "cancel without a reassignment in progress")
    GROUP_SUBSCRIBED_TO_TOPIC = (86, "", "OffsetDelete on a topic the live group consumes")
    INVALID_RECORD = (87, "", "record failed broker validation")
    UNSTABLE_OFFSET_COMMIT = (
        88,
        "retry",
        "OffsetFetch requireStable and a pending transactional commit exists",
    )
    THROTTLING_QUOTA_EXCEEDED = (
        89,
        "retry",
        "controller mutation quota; retry after throttle time",
    )
    PRODUCER_FENCED = (90, "", "newer producer with same transactional id (fatal)")
    RESOURCE_NOT_FOUND = (91, "", "e.g. SCRAM user missing")
    DUPLICATE_RESOURCE = (92, "", "same resource twice in request")
    UNACCEPTABLE_CREDENTIAL = (93, "", "e.g. SCRAM iterations out of range")
    INCONSISTENT_VOTER_SET = (94, "", "KRaft")
    INVALID_UPDATE_VERSION = (95, "", "AlterPartition with stale zk/partition epoch")
    FEATURE_UPDATE_FAILED = (96, "", "feature finalization failed")
    PRINCIPAL_DESERIALIZATION_FAILURE = (97, "", "Envelope principal unreadable")
    SNAPSHOT_NOT_FOUND = (98, "", "KRaft")
    POSITION_OUT_OF_RANGE = (99, "", "KRaft")
    UNKNOWN_TOPIC_ID = (100, "refresh", "topic id not known here")
    DUPLICATE_BROKER_REGISTRATION = (101, "", "KRaft broker id in use")
    BROKER_ID_NOT_REGISTERED = (102, "", "KRaft")
    INCONSISTENT_TOPIC_ID = (103, "refresh", "topic id differs from the log's")
    INCONSISTENT_CLUSTER_ID = (104, "", "cluster id differs")
    TRANSACTIONAL_ID_NOT_FOUND = (105, "", "no such transactional id")
    FETCH_SESSION_TOPIC_ID_ERROR = (106, "retry", "session switched between names and ids")
    INELIGIBLE_REPLICA = (107, "", "AlterPartition ISR has a fenced/shutting-down replica")
    NEW_LEADER_ELECTED = (108, "", "AlterPartition applied but leader changed")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, "", "local log no longer has the offset")
    FENCED_MEMBER_EPOCH = (110, "", "KIP-848: member epoch fenced, rejoin from 0")
    UNRELEASED_INSTANCE_ID = (111, "", "KIP-848: static id still held")
    UNSUPPORTED_ASSIGNOR = (112, "", "KIP-848 assignor unknown")
    STALE_MEMBER_EPOCH = (113, "", "KIP-848: offset call with old epoch")
    MISMATCHED_ENDPOINT_TYPE = (114, "", "broker request sent to controller endpoint or reverse")
    UNSUPPORTED_ENDPOINT_TYPE = (115, "", "endpoint type not supported")
    UNKNOWN_CONTROLLER_ID = (116, "", "KRaft")
    UNKNOWN_SUBSCRIPTION_ID = (117, "", "KIP-714 push with stale subscription")
    TELEMETRY_TOO_LARGE = (118, "", "KIP-714 push too big")
    INVALID_REGISTRATION = (119, "", "KRaft registration rejected")
    TRANSACTION_ABORTABLE = (
        120,
        "",
        "client may abort and continue (KIP-890; newer versions only)",
    )
    INVALID_RECORD_STATE = (121, "", "share ack not legal")
    SHARE_SESSION_NOT_FOUND = (122, "retry", "share groups")
    INVALID_SHARE_SESSION_EPOCH = (123, "retry", "share groups")
    FENCED_STATE_EPOCH = (124, "", "share coordinator")
    INVALID_VOTER_KEY = (125, "", "KRaft")
    DUPLICATE_VOTER = (126, "", "KRaft")
    VOTER_NOT_FOUND = (127, "", "KRaft")
    INVALID_REGULAR_EXPRESSION = (128, "", "4.x: KIP-848 regex subscription invalid")
    REBOOTSTRAP_REQUIRED = (129, "", "4.x: client must re-resolve bootstrap list")
    STREAMS_INVALID_TOPOLOGY = (130, "", "4.x streams groups")
    STREAMS_INVALID_TOPOLOGY_EPOCH = (131, "", "4.x streams groups")
    STREAMS_TOPOLOGY_FENCED = (132, "", "4.x streams groups")
    SHARE_SESSION_LIMIT_REACHED = (133, "retry", "4.x share groups")
