"""The numbers of librdkafka's errors: below 0 those of the client, from 0 on those of brokers."""

from __future__ import annotations

from barnabas.model.error_codes import ErrorCode


class ErrorCodes:
    """One attribute for each error, as programs name it: `KafkaError._ALL_BROKERS_DOWN`."""

    _BAD_MSG = -199
    _BAD_COMPRESSION = -198
    _DESTROY = -197
    _FAIL = -196
    _TRANSPORT = -195
    _CRIT_SYS_RESOURCE = -194
    _RESOLVE = -193
    _MSG_TIMED_OUT = -192
    _PARTITION_EOF = -191
    _UNKNOWN_PARTITION = -190
    _FS = -189
    _UNKNOWN_TOPIC = -188
    _ALL_BROKERS_DOWN = -187
    _INVALID_ARG = -186
    _TIMED_OUT = -185
    _QUEUE_FULL = -184
    _ISR_INSUFF = -183
    _NODE_UPDATE = -182
    _SSL = -181
    _WAIT_COORD = -180
    _UNKNOWN_GROUP = -179
    _IN_PROGRESS = -178
    _PREV_IN_PROGRESS = -177
    _EXISTING_SUBSCRIPTION = -176
    _ASSIGN_PARTITIONS = -175
    _REVOKE_PARTITIONS = -174
    _CONFLICT = -173
    _STATE = -172
    _UNKNOWN_PROTOCOL = -171
    _NOT_IMPLEMENTED = -170
    _AUTHENTICATION = -169
    _NO_OFFSET = -168
    _OUTDATED = -167
    _TIMED_OUT_QUEUE = -166
    _UNSUPPORTED_FEATURE = -165
    _WAIT_CACHE = -164
    _INTR = -163
    _KEY_SERIALIZATION = -162
    _VALUE_SERIALIZATION = -161
    _KEY_DESERIALIZATION = -160
    _VALUE_DESERIALIZATION = -159
    _PARTIAL = -158
    _READ_ONLY = -157
    _NOENT = -156
    _UNDERFLOW = -155
    _INVALID_TYPE = -154
    _RETRY = -153
    _PURGE_QUEUE = -152
    _PURGE_INFLIGHT = -151
    _FATAL = -150
    _INCONSISTENT = -149
    _GAPLESS_GUARANTEE = -148
    _MAX_POLL_EXCEEDED = -147
    _UNKNOWN_BROKER = -146
    _NOT_CONFIGURED = -145
    _FENCED = -144
    _APPLICATION = -143
    _ASSIGNMENT_LOST = -142
    _NOOP = -141
    _AUTO_OFFSET_RESET = -140
    _LOG_TRUNCATION = -139
    _INVALID_DIFFERENT_RECORD = -138
    _DESTROY_BROKER = -137
    UNKNOWN = -1
    NO_ERROR = 0
    OFFSET_OUT_OF_RANGE = 1
    INVALID_MSG = 2
    UNKNOWN_TOPIC_OR_PART = 3
    INVALID_MSG_SIZE = 4
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_FOR_PARTITION = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    MSG_SIZE_TOO_LARGE = 10
    STALE_CTRL_EPOCH = 11
    OFFSET_METADATA_TOO_LARGE = 12
    NETWORK_EXCEPTION = 13
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    TOPIC_EXCEPTION = 17
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    INVALID_REQUIRED_ACKS = 21
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    INVALID_COMMIT_OFFSET_SIZE = 28
    TOPIC_AUTHORIZATION_FAILED = 29
    GROUP_AUTHORIZATION_FAILED = 30
    CLUSTER_AUTHORIZATION_FAILED = 31
    INVALID_TIMESTAMP = 32
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    UNSUPPORTED_VERSION = 35
    TOPIC_ALREADY_EXISTS = 36
    INVALID_PARTITIONS = 37
    INVALID_REPLICATION_FACTOR = 38
    INVALID_REPLICA_ASSIGNMENT = 39
    INVALID_CONFIG = 40
    NOT_CONTROLLER = 41
    INVALID_REQUEST = 42
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43
    POLICY_VIOLATION = 44
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    DUPLICATE_SEQUENCE_NUMBER = 46
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    INVALID_TRANSACTION_TIMEOUT = 50
    CONCURRENT_TRANSACTIONS = 51
    TRANSACTION_COORDINATOR_FENCED = 52
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53
    SECURITY_DISABLED = 54
    OPERATION_NOT_ATTEMPTED = 55
    KAFKA_STORAGE_ERROR = 56
    LOG_DIR_NOT_FOUND = 57
    SASL_AUTHENTICATION_FAILED = 58
    UNKNOWN_PRODUCER_ID = 59
    REASSIGNMENT_IN_PROGRESS = 60
    DELEGATION_TOKEN_AUTH_DISABLED = 61
    DELEGATION_TOKEN_NOT_FOUND = 62
    DELEGATION_TOKEN_OWNER_MISMATCH = 63
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65
    DELEGATION_TOKEN_EXPIRED = 66
    INVALID_PRINCIPAL_TYPE = 67
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    FETCH_SESSION_ID_NOT_FOUND = 70
    INVALID_FETCH_SESSION_EPOCH = 71
    LISTENER_NOT_FOUND = 72
    TOPIC_DELETION_DISABLED = 73
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    UNSUPPORTED_COMPRESSION_TYPE = 76
    STALE_BROKER_EPOCH = 77
    OFFSET_NOT_AVAILABLE = 78
    MEMBER_ID_REQUIRED = 79
    PREFERRED_LEADER_NOT_AVAILABLE = 80
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
    ELECTION_NOT_NEEDED = 84
    NO_REASSIGNMENT_IN_PROGRESS = 85
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    INVALID_RECORD = 87
    UNSTABLE_OFFSET_COMMIT = 88
    THROTTLING_QUOTA_EXCEEDED = 89
    PRODUCER_FENCED = 90
    RESOURCE_NOT_FOUND = 91
    DUPLICATE_RESOURCE = 92
    UNACCEPTABLE_CREDENTIAL = 93
    INCONSISTENT_VOTER_SET = 94
    INVALID_UPDATE_VERSION = 95
    FEATURE_UPDATE_FAILED = 96
    PRINCIPAL_DESERIALIZATION_FAILURE = 97
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    MISMATCHED_ENDPOINT_TYPE = 114
    UNSUPPORTED_ENDPOINT_TYPE = 115
    UNKNOWN_CONTROLLER_ID = 116
    UNKNOWN_SUBSCRIPTION_ID = 117
    TELEMETRY_TOO_LARGE = 118
    INVALID_REGISTRATION = 119
    TRANSACTION_ABORTABLE = 120
    INVALID_RECORD_STATE = 121
    SHARE_SESSION_NOT_FOUND = 122
    INVALID_SHARE_SESSION_EPOCH = 123
    FENCED_STATE_EPOCH = 124
    INVALID_VOTER_KEY = 125
    DUPLICATE_VOTER = 126
    VOTER_NOT_FOUND = 127
    INVALID_REGULAR_EXPRESSION = 128
    REBOOTSTRAP_REQUIRED = 129
    STREAMS_INVALID_TOPOLOGY = 130
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131
    STREAMS_TOPOLOGY_FENCED = 132
    SHARE_SESSION_LIMIT_REACHED = 133


_NAMES = {number: name for name, number in vars(ErrorCodes).items() if isinstance(number, int)}

_TEXTS = {
    ErrorCodes._BAD_MSG: "Bad message format",
    ErrorCodes._BAD_COMPRESSION: "Invalid compressed data",
    ErrorCodes._DESTROY: "Broker handle destroyed for termination",
    ErrorCodes._FAIL: "Communication failure with broker",
    ErrorCodes._TRANSPORT: "Broker transport failure",
    ErrorCodes._CRIT_SYS_RESOURCE: "Critical system resource failure",
    ErrorCodes._RESOLVE: "Host resolution failure",
    ErrorCodes._MSG_TIMED_OUT: "Message timed out",
    ErrorCodes._UNKNOWN_PARTITION: "Unknown partition",
    ErrorCodes._FS: "File or filesystem error",
    ErrorCodes._UNKNOWN_TOPIC: "Unknown topic",
    ErrorCodes._ALL_BROKERS_DOWN: "All broker connections are down",
    ErrorCodes._INVALID_ARG: "Invalid argument or configuration",
    ErrorCodes._TIMED_OUT: "Timed out",
    ErrorCodes._QUEUE_FULL: "Queue full",
    ErrorCodes._ISR_INSUFF: "ISR count insufficient",
    ErrorCodes._NODE_UPDATE: "Broker node update",
    ErrorCodes._SSL: "SSL error",
    ErrorCodes._WAIT_COORD: "Waiting for coordinator",
    ErrorCodes._UNKNOWN_GROUP: "Unknown group",
    ErrorCodes._IN_PROGRESS: "Operation in progress",
    ErrorCodes._PREV_IN_PROGRESS: "Previous operation in progress",
    ErrorCodes._EXISTING_SUBSCRIPTION: "Existing subscription",
    ErrorCodes._ASSIGN_PARTITIONS: "Assign partitions",
    ErrorCodes._REVOKE_PARTITIONS: "Revoke partitions",
    ErrorCodes._CONFLICT: "Conflicting use",
    ErrorCodes._STATE: "Erroneous state",
    ErrorCodes._UNKNOWN_PROTOCOL: "Unknown protocol",
    ErrorCodes._NOT_IMPLEMENTED: "Not implemented",
    ErrorCodes._AUTHENTICATION: "Authentication failure",
    ErrorCodes._NO_OFFSET: "No offset stored",
    ErrorCodes._OUTDATED: "Outdated",
    ErrorCodes._TIMED_OUT_QUEUE: "Timed out in queue",
    ErrorCodes._UNSUPPORTED_FEATURE: "Required feature not supported by broker",
    ErrorCodes._WAIT_CACHE: "Awaiting cache update",
    ErrorCodes._INTR: "Operation interrupted",
    ErrorCodes._KEY_SERIALIZATION: "Key serialization error",
    ErrorCodes._VALUE_SERIALIZATION: "Value serialization error",
    ErrorCodes._KEY_DESERIALIZATION: "Key deserialization error",
    ErrorCodes._VALUE_DESERIALIZATION: "Value deserialization error",
    ErrorCodes._PARTIAL: "Partial response",
    ErrorCodes._READ_ONLY: "Read-only object",
    ErrorCodes._NOENT: "No such entry",
    ErrorCodes._UNDERFLOW: "Read underflow",
    ErrorCodes._INVALID_TYPE: "Invalid type",
    ErrorCodes._RETRY: "Retry operation",
    ErrorCodes._PURGE_QUEUE: "Purged in queue",
    ErrorCodes._PURGE_INFLIGHT: "Purged in flight",
    ErrorCodes._FATAL: "Fatal error",
    ErrorCodes._INCONSISTENT: "Inconsistent state",
    ErrorCodes._GAPLESS_GUARANTEE: "Gap-less ordering would not be guaranteed if proceeding",
    ErrorCodes._MAX_POLL_EXCEEDED: (
        "Maximum application poll interval (max.poll.interval.ms) exceeded"
    ),
    ErrorCodes._UNKNOWN_BROKER: "Unknown broker",
    ErrorCodes._NOT_CONFIGURED: "Functionality not configured",
    ErrorCodes._FENCED: "This instance has been fenced by a newer instance",
    ErrorCodes._APPLICATION: "Application generated error",
    ErrorCodes._ASSIGNMENT_LOST: "Group partition assignment lost",
    ErrorCodes._NOOP: "No operation performed",
    ErrorCodes._AUTO_OFFSET_RESET: "No offset to automatically reset to",
    ErrorCodes._LOG_TRUNCATION: "Partition log truncation detected",
    ErrorCodes._INVALID_DIFFERENT_RECORD: (
        "an invalid record in the same batch caused the failure of this message too"
    ),
    ErrorCodes._DESTROY_BROKER: "Broker handle destroyed without termination",
}
"""What the client's own errors mean, in librdkafka's words: programs look for them."""


def name_of(code: int) -> str:
    """Return the name of an error."""
    return _NAMES.get(code, f"ERR_{code}?")


def text_of(code: int) -> str:
    """Return what an error means."""
    if code == ErrorCodes._PARTITION_EOF:
        return "Broker: No more messages"
    if code == ErrorCodes.NO_ERROR:
        return "Success"
    if code not in _NAMES:
        return f"Err-{code}?"
    if code in _TEXTS:
        return f"Local: {_TEXTS[code]}"
    return f"Broker: {ErrorCode.of(code).meaning}"
