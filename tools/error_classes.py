"""Write the exception class of each error code into model/request_errors.py, from ErrorCode.

python tools/error_classes.py            write the classes
python tools/error_classes.py --check    fail when they are stale

A class is named after its code, unless kafka-python named it otherwise (`NAMES`); `ALIASES` are the
other names that kafka-python, aiokafka or older releases of them have for it.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from barnabas.model.error_codes import ErrorCode

MODULE = Path(__file__).resolve().parent.parent / "src/barnabas/model/request_errors.py"
BLOCK = re.compile(r"(?<=# Written by tools/error_classes.py:\n).*?(?=# End\.\n)", re.DOTALL)

NAMES = {
    "UNKNOWN_SERVER_ERROR": "UnknownError",
    "INVALID_FETCH_SIZE": "InvalidFetchRequestError",
    "NOT_LEADER_OR_FOLLOWER": "NotLeaderForPartitionError",
    "MESSAGE_TOO_LARGE": "MessageSizeTooLargeError",
    "INVALID_TOPIC_EXCEPTION": "InvalidTopicError",
    "INVALID_REPLICA_ASSIGNMENT": "InvalidReplicationAssignmentError",
    "INVALID_CONFIG": "InvalidConfigurationError",
}

ALIASES = {
    "AuthenticationMethodNotSupported": "UNSUPPORTED_SASL_MECHANISM",
    "GroupCoordinatorNotAvailableError": "COORDINATOR_NOT_AVAILABLE",
    "GroupLoadInProgressError": "COORDINATOR_LOAD_IN_PROGRESS",
    "NotCoordinatorForGroupError": "NOT_COORDINATOR",
    "NotLeaderOrFollowerError": "NOT_LEADER_OR_FOLLOWER",
    "RecordTooLargeError": "MESSAGE_TOO_LARGE",
    "StaleLeaderEpochCodeError": "NETWORK_EXCEPTION",
    "UnknownBrokerIdError": "BROKER_NOT_AVAILABLE",
}

WITHOUT_ERROR = (
    "OUT_OF_ORDER_SEQUENCE_NUMBER",
    "DUPLICATE_SEQUENCE_NUMBER",
    "INVALID_PRODUCER_EPOCH",
    "INVALID_TXN_STATE",
    "INVALID_PRODUCER_ID_MAPPING",
    "INVALID_TRANSACTION_TIMEOUT",
    "CONCURRENT_TRANSACTIONS",
    "TRANSACTION_COORDINATOR_FENCED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    "SECURITY_DISABLED",
    "OPERATION_NOT_ATTEMPTED",
    "LOG_DIR_NOT_FOUND",
    "SASL_AUTHENTICATION_FAILED",
    "UNKNOWN_PRODUCER_ID",
    "REASSIGNMENT_IN_PROGRESS",
    "DELEGATION_TOKEN_AUTH_DISABLED",
    "DELEGATION_TOKEN_NOT_FOUND",
    "DELEGATION_TOKEN_OWNER_MISMATCH",
    "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    "DELEGATION_TOKEN_EXPIRED",
    "INVALID_PRINCIPAL_TYPE",
    "NON_EMPTY_GROUP",
    "GROUP_ID_NOT_FOUND",
    "FETCH_SESSION_ID_NOT_FOUND",
    "INVALID_FETCH_SESSION_EPOCH",
    "LISTENER_NOT_FOUND",
    "MEMBER_ID_REQUIRED",
    "PRODUCER_FENCED",
)
"""Codes whose class has a second name without `Error` at its end."""


def class_name(code: ErrorCode) -> str:
    """Return the name of a code's class."""
    camel = "".join(word.capitalize() for word in code.name.split("_"))
    return NAMES.get(code.name, camel if camel.endswith("Error") else f"{camel}Error")


def bases(code: ErrorCode) -> list[str]:
    """Return the classes that the class of a code inherits from, the one with the code last."""
    if code.name.endswith("AUTHORIZATION_FAILED"):
        return ["AuthorizationError"]
    found = ["CodedError"]
    if code.retriable:
        found.insert(0, "InvalidMetadataError" if code.stale_metadata else "RetriableError")
    if code is ErrorCode.CORRUPT_MESSAGE:
        found.append("CorruptRecordError")
    return found


def aliases() -> dict[str, str]:
    """Return the name of a class for each of its other names."""
    found = {alias: class_name(ErrorCode[code]) for alias, code in ALIASES.items()}
    for code in WITHOUT_ERROR:
        name = class_name(ErrorCode[code])
        found[name.removesuffix("Error")] = name
    return dict(sorted(found.items()))


def source() -> Iterator[str]:
    """Yield the lines of all classes, of their other names, and of `__all__`."""
    yield "# fmt: off"
    classes = {class_name(code): code for code in ErrorCode if code is not ErrorCode.NONE}
    for name, code in classes.items():
        yield f"class {name}({', '.join(bases(code))}, code=ErrorCode.{code.name}): ..."
    yield ""
    for alias, name in aliases().items():
        yield f"{alias} = {name}"
    yield ""
    public = sorted([*classes, *aliases(), "AuthorizationError", "CodedError"])
    names = ", ".join(f'"{name}"' for name in ["REQUEST_ERRORS", *public, "request_error"])
    yield "__all__ = ["
    yield textwrap.fill(names + ",", 100, initial_indent="    ", subsequent_indent="    ")
    yield "]"
    yield "# fmt: on"


def main(arguments: list[str]) -> int:
    text = MODULE.read_text()
    written, count = BLOCK.subn(lambda _: "\n".join(source()) + "\n", text)
    if count != 1:
        print(f"{MODULE.name} has {count} places for the classes, not one", file=sys.stderr)
        return 1
    if arguments == ["--check"]:
        if written != text:
            print(f"{MODULE.name} is stale: run tools/error_classes.py", file=sys.stderr)
        return int(written != text)
    MODULE.write_text(written)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
