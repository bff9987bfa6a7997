"""Operations and results survive their way over the socket; everything else is refused."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.coordination.contract import (
    BadVersion,
    Check,
    Create,
    Delete,
    NoNode,
    Operation,
    Result,
    SessionExpired,
    Set,
    Stat,
)
from barnabas.coordination.socket import messages
from barnabas.coordination.socket.messages import (
    Call,
    TreeReply,
    TreeRequest,
    Write,
    failure_of,
    failure_reply,
    frame_of,
    reply_of,
    request_of,
)
from barnabas.model.errors import (
    BarnabasError,
    InvalidValueError,
    RemoteProtocolError,
    StorageError,
)

OPERATIONS: list[Operation] = [
    Create("/a", b"\x00\xff", ephemeral=True, sequence=True),
    Create("/ü", b""),
    Set("/a", b"x", 2**31 - 1),
    Delete("/a"),
    Check("/a", 7),
]


def test_operations_arrive_as_they_were() -> None:
    sent = TreeRequest(
        correlation_id=5, call=Call.MULTI, writes=[messages.write_of(each) for each in OPERATIONS]
    )
    received = request_of(frame_of(sent)[4:])
    assert (received.correlation_id, received.call) == (5, Call.MULTI)
    assert [messages.operation_of(each) for each in received.writes] == OPERATIONS


def test_results_arrive_as_they_were() -> None:
    results: list[Result] = [None, "/a/n0000000001", "", Stat(1, 2**60, 3, 4, 5)]
    sent = TreeReply(answers=[messages.answer_of(each) for each in results])
    received = reply_of(frame_of(sent)[4:])
    assert [messages.result_of(each) for each in received.answers] == results
    found = messages.answer_of((b"data", Stat(1, 2, 3, 4, 5)))
    assert (found.data, messages.stat_of(found)) == (b"data", Stat(1, 2, 3, 4, 5))


@pytest.mark.parametrize(
    "error",
    [
        BadVersion("/a", "/a has version 1, not 2"),
        NoNode("/a", "/a does not exist"),
        InvalidValueError("the root cannot be deleted"),
        StorageError("disk full"),
        SessionExpired(9),
    ],
)
def test_errors_arrive_as_they_were(error: BarnabasError) -> None:
    received = failure_of(reply_of(frame_of(failure_reply(1, error))[4:]), 9)
    assert type(received) is type(error)
    assert str(received) == str(error)
    assert getattr(received, "path", None) == getattr(error, "path", None)


def test_unknown_calls_writes_and_events_are_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="call 7"):
        request_of(frame_of(TreeRequest(call=7))[4:])
    with pytest.raises(RemoteProtocolError, match="write 4"):
        messages.operation_of(Write(kind=4))
    with pytest.raises(RemoteProtocolError):
        reply_of(frame_of(TreeReply(correlation_id=messages.NOTICE, text="eaten"))[4:])
    with pytest.raises(RemoteProtocolError):
        request_of(frame_of(TreeRequest())[4:] + b"more")


def test_noise_is_a_request_or_an_error_of_the_protocol() -> None:
    source = Random(7)
    real = frame_of(TreeRequest(call=Call.MULTI, writes=[messages.write_of(OPERATIONS[0])]))[4:]
    read = 0
    for _ in range(2000):
        damaged = bytearray(real)
        for _ in range(source.randrange(1, 4)):
            damaged[source.randrange(len(damaged))] = source.randrange(256)
        try:
            read += isinstance(request_of(bytes(damaged[: source.randrange(60)])), TreeRequest)
        except RemoteProtocolError:
            continue
    assert read < 2000


def test_a_request_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "REQUEST_BYTES_MAX", 100)
    with pytest.raises(InvalidValueError, match="exceed the limit of 100"):
        frame_of(TreeRequest(paths=["/" + "a" * 100]))
    assert len(frame_of(TreeReply(text="a" * 200))) > 200
