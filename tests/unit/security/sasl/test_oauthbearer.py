"""OAUTHBEARER: its messages, and the two steps of a refusal."""

from __future__ import annotations

import pytest

from barnabas.security.sasl.exchange import Login, Rejected, Step
from barnabas.security.sasl.oauthbearer import InvalidToken, OAuthBearer


def validate(token: str, now_ms: int) -> Login:
    if token == "narrow":
        raise InvalidToken("too narrow", 'a "b"')
    if token != "good.to-ken~+/==":
        raise InvalidToken("not good")
    return Login("alice", now_ms + 1000)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer good.to-ken~+/==\x01\x01",
        b"n,,\x01auth=bEARER   good.to-ken~+/==\x01\x01",
        b"n,a=alice,\x01auth=Bearer good.to-ken~+/==\x01\x01",
        b"n,,\x01host=h\x01auth=Bearer good.to-ken~+/==\x01traceId=7 8,9\x01\x01",
    ],
)
def test_a_good_token_lets_in(message: bytes) -> None:
    assert OAuthBearer(validate).step(message, 5) == Step(b"", Login("alice", 1005))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer good.to-ken~+/==\x01\x01",
        b"n,,\x01auth=Bearer good.to-ken~+/==\x01",
        b"n,,\x01auth=Basic good.to-ken~+/==\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer two words\x01\x01",
        b"n,,\x01auth=Bearer good.to-ken~+/==\x01auth=Bearer x\x01\x01",
        b"n,,\x01aut1=Bearer good.to-ken~+/==\x01\x01",
        b"n,a=bob,\x01auth=Bearer good.to-ken~+/==\x01\x01",
        b"n,,\x01auth=Bearer good.to-ken~+/==\x01\x01\x01",
    ],
)
def test_malformed_messages_are_rejected_at_once(message: bytes) -> None:
    with pytest.raises(Rejected) as failure:
        OAuthBearer(validate).step(message, 0)
    assert failure.value.told is None


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"stale", '{"status":"invalid_token"}'),
        (b"narrow", '{"status":"insufficient_scope", "scope":"a \\"b\\""}'),
    ],
)
@pytest.mark.parametrize("reply", [b"\x01", b"", b"anything"])
def test_a_refusal_takes_two_steps(token: bytes, text: str, reply: bytes) -> None:
    exchange = OAuthBearer(validate)
    message = b"n,,\x01auth=Bearer %s\x01\x01" % token
    step = exchange.step(message, 0)
    assert (step.answer, step.login) == (text.encode(), None)
    assert step.refusal.startswith("token rejected: ")
    with pytest.raises(Rejected) as failure:
        exchange.step(reply, 0)
    assert failure.value.told == text
    assert token.decode() not in str(failure.value).replace("too narrow", "")
