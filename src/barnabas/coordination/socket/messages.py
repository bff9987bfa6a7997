"""What a session and the server of its tree say to each other: frames of one message each.

Requests of a session are answered in order; between the answers are notices, each of a watch that
has fired. Both ends are of one release, as the supervisor starts its workers: there is one version.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from barnabas.coordination.contract import (
    BadVersion,
    Check,
    CoordinationError,
    Create,
    Delete,
    EventType,
    Found,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    Operation,
    Result,
    SessionExpired,
    Set,
    Stat,
)
from barnabas.model.errors import (
    BarnabasError,
    InvalidValueError,
    LocalProtocolError,
    RemoteProtocolError,
    StorageError,
)
from barnabas.wire.codec import decode, encode
from barnabas.wire.frame import SIZE, SIZE_MAX
from barnabas.wire.primitives import Buffer
from barnabas.wire.schema import Message, Struct, field, message, struct

REQUEST_BYTES_MAX: Final = 64 * 1024 * 1024
"""Maximum size of a request: a transaction of the largest nodes that a controller writes fits."""
REPLY_BYTES_MAX: Final = SIZE_MAX
NOTICE: Final = -1
"""As a correlation id: not an answer, but a watch that has fired."""


class Call(IntEnum):
    """What a request asks for."""

    BEGIN = 0
    END = 1
    HEARTBEAT = 2
    GET = 3
    EXISTS = 4
    CHILDREN = 5
    MULTI = 6


class Kind(IntEnum):
    """The kind of a write."""

    CREATE = 0
    SET = 1
    DELETE = 2
    CHECK = 3


@struct
class Write(Struct):
    """One operation of a transaction."""

    kind: int = field("int8")
    path: str = field("string")
    data: bytes = field("bytes")
    version: int = field("int32")
    ephemeral: bool = field("bool")
    sequence: bool = field("bool")


@message(versions="0", flexible="0+")
class TreeRequest(Message):
    """One call of a session."""

    correlation_id: int = field("int32")
    call: int = field("int8")
    timeout_ms: int = field("int32")
    """Of BEGIN: after how long without a request the session expires."""
    watch: bool = field("bool")
    make_parents: bool = field("bool")
    """Of MULTI: its one write creates a node, and what is missing above it."""
    paths: list[str] = field(["string"])
    writes: list[Write] = field([Write])


@struct
class Answer(Struct):
    """What was found or done: a path, a Stat, data, or a combination; nothing if all are absent."""

    path: str | None = field("string", nullable=True, default=None)
    data: bytes = field("bytes")
    stat: list[int] = field(["int64"])


@message(versions="0", flexible="0+")
class TreeReply(Message):
    """The answer to a request, or the notice of a watch."""

    correlation_id: int = field("int32")
    error: int = field("int8", default=-1)
    """A position in ERRORS; -1 for none."""
    path: str = field("string")
    """The node that an error or a notice is about."""
    text: str = field("string")
    """The message of an error, or the type of an event."""
    session_id: int = field("int64")
    answers: list[Answer] = field([Answer])


ERRORS: Final[tuple[type[BarnabasError], ...]] = (
    NoNode,
    NodeExists,
    BadVersion,
    NotEmpty,
    NoChildrenForEphemerals,
    SessionExpired,
    StorageError,
    InvalidValueError,
)
EVENTS: Final = frozenset(event.value for event in EventType)


def frame_of(sent: TreeRequest | TreeReply) -> bytes:
    """Encode a message as a frame; raise InvalidValueError if it is too large."""
    payload = encode(sent, 0)
    limit = REQUEST_BYTES_MAX if isinstance(sent, TreeRequest) else REPLY_BYTES_MAX
    if len(payload) > limit:
        raise InvalidValueError(
            f"{len(payload)} bytes for the coordination service exceed the limit of {limit}"
        )
    return SIZE.pack(len(payload)) + payload


def request_of(frame: Buffer) -> TreeRequest:
    """Decode a request; raise RemoteProtocolError for anything else."""
    request, end = decode(TreeRequest, frame, 0)
    if end != len(frame) or not 0 <= request.call <= max(Call):
        raise RemoteProtocolError(f"call {request.call} in {len(frame)} bytes is not known")
    return request


def reply_of(frame: Buffer) -> TreeReply:
    """Decode a reply; raise RemoteProtocolError for anything else."""
    reply, end = decode(TreeReply, frame, 0)
    if end != len(frame) or (reply.correlation_id == NOTICE and reply.text not in EVENTS):
        raise RemoteProtocolError(f"a reply of {len(frame)} bytes is not known")
    return reply


def write_of(operation: Operation) -> Write:
    """Return how an operation is sent."""
    match operation:
        case Create(path, data, ephemeral, sequence):
            return Write(
                kind=Kind.CREATE, path=path, data=data, ephemeral=ephemeral, sequence=sequence
            )
        case Set(path, data, version):
            return Write(kind=Kind.SET, path=path, data=data, version=version)
        case Delete(path, version):
            return Write(kind=Kind.DELETE, path=path, version=version)
        case Check(path, version):
            return Write(kind=Kind.CHECK, path=path, version=version)


def operation_of(write: Write) -> Operation:
    """Return the operation that was sent."""
    match write.kind:
        case Kind.CREATE:
            return Create(write.path, bytes(write.data), write.ephemeral, write.sequence)
        case Kind.SET:
            return Set(write.path, bytes(write.data), write.version)
        case Kind.DELETE:
            return Delete(write.path, write.version)
        case Kind.CHECK:
            return Check(write.path, write.version)
    raise RemoteProtocolError(f"write {write.kind} is not known")


def answer_of(result: Result | Found) -> Answer:
    """Return how a result is sent."""
    match result:
        case None:
            return Answer()
        case str():
            return Answer(path=result)
        case Stat():
            return Answer(stat=list(result))
        case data, stat:
            return Answer(data=data, stat=list(stat))


def stat_of(answer: Answer) -> Stat | None:
    """Return the Stat of an answer, None if it has none."""
    return Stat._make(answer.stat) if answer.stat else None


def result_of(answer: Answer) -> Result:
    """Return the result of a write."""
    return answer.path if answer.path is not None else stat_of(answer)


def failure_reply(correlation_id: int, error: BarnabasError) -> TreeReply:
    """Return how an error is sent."""
    code = next((code for code, each in enumerate(ERRORS) if isinstance(error, each)), None)
    if code is None:
        raise LocalProtocolError(f"{error!r} is not an error of a tree") from error
    path = error.path if isinstance(error, CoordinationError) else ""
    return TreeReply(correlation_id=correlation_id, error=code, path=path, text=str(error))


def failure_of(reply: TreeReply, session_id: int) -> BarnabasError | None:
    """Return the error that a reply has, if it has one."""
    if reply.error < 0:
        return None
    kind = ERRORS[reply.error] if reply.error < len(ERRORS) else StorageError
    if kind is SessionExpired:
        return SessionExpired(session_id)
    if issubclass(kind, CoordinationError):
        return kind(reply.path, reply.text)
    return kind(reply.text)
