"""Delegation tokens on a broker: made, used to log in, renewed, expired, kept and swept."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.network.test_authentication import (
    LOGIN,
    authenticate,
    handshake,
    log_in,
    principals,
)
from tests.unit.broker.serving import Serving, Wire, metadata
from tests.unit.security.sasl.clients import ScramClient

from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.principal import Principal
from barnabas.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

OPEN, SASL = range(2)
OPTIONS = {
    "listeners": "OPEN://127.0.0.1:0,SASL://127.0.0.1:0",
    "listener.security.protocol.map": "OPEN:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "OPEN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl.plain.sasl.jaas.config": (
        f'{LOGIN} user_alice="a" user_bob="b" user_carol="c";'
    ),
    "connection.failed.authentication.delay.ms": "0",
    "delegation.token.secret.key": "abc",
}
DAY_MS = 86_400_000


class OwnTokensOnly:
    """An authorizer that allows all but seeing and making tokens of others."""

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: Operation,
        resource: ResourceType,
        name: str,
    ) -> bool:
        return resource not in (ResourceType.DELEGATION_TOKEN, ResourceType.USER)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with Serving(tmp_path, OPTIONS) as running:
        running.broker.authorizer = OwnTokensOnly()
        yield running


@pytest.fixture
def alice(serving: Serving) -> Iterator[Wire]:
    yield from _client(serving, "alice", "a")


@pytest.fixture
def bob(serving: Serving) -> Iterator[Wire]:
    yield from _client(serving, "bob", "b")


def _client(serving: Serving, name: str, password: str) -> Iterator[Wire]:
    with serving.connect(SASL) as wire:
        log_in(wire, name, password)
        yield wire


def create(wire: Wire, *renewers: str, **more: Any) -> CreateDelegationTokenResponse:
    named = [CreatableRenewers(principal_type="User", principal_name=name) for name in renewers]
    response = wire.ask(CreateDelegationTokenRequest(renewers=named, **more))
    assert isinstance(response, CreateDelegationTokenResponse)
    return response


def shown(wire: Wire, *owners: str, all_owners: bool = False) -> list[str]:
    named = None
    if not all_owners:
        named = [
            DescribeDelegationTokenOwner(principal_type="User", principal_name=name)
            for name in owners
        ]
    answer = wire.ask(DescribeDelegationTokenRequest(owners=named))
    assert answer.error_code == 0
    return [token.token_id for token in answer.tokens]


def by_token(
    wire: Wire, token_id: str, mac: bytes, mechanism: str = "SCRAM-SHA-256", extension: str = "true"
) -> Any:
    handshake(wire, mechanism)
    digest = "sha256" if mechanism.endswith("256") else "sha512"
    client = ScramClient(digest, token_id, b64encode(mac).decode())
    challenge = authenticate(wire, client.first(f",tokenauth={extension}" if extension else ""))
    return authenticate(wire, client.final(challenge.auth_bytes))


@pytest.mark.parametrize("version", range(4))
def test_every_version_is_answered(alice: Wire, version: int) -> None:
    """Who has requested a token is said from version 3 on."""
    requester = ("User", "alice") if version >= 3 else ("", "")
    made = alice.ask(CreateDelegationTokenRequest(renewers=[]), version)
    assert made.error_code == 0
    assert requester == (made.token_requester_principal_type, made.token_requester_principal_name)
    (found,) = alice.ask(DescribeDelegationTokenRequest(owners=None), version).tokens
    assert (found.token_id, found.hmac) == (made.token_id, made.hmac)
    assert requester == (found.token_requester_principal_type, found.token_requester_principal_name)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_token_logs_its_owner_in(serving: Serving, alice: Wire, mechanism: str) -> None:
    token = create(alice)
    assert token.error_code == 0
    assert (token.principal_type, token.principal_name) == ("User", "alice")
    assert token.expiry_timestamp_ms == token.issue_timestamp_ms + DAY_MS
    assert token.max_timestamp_ms == token.issue_timestamp_ms + 7 * DAY_MS
    for _ in range(2):
        with serving.connect(SASL) as wire:
            answer = by_token(wire, token.token_id, token.hmac, mechanism)
            assert answer.error_code == 0
            assert DAY_MS - 60_000 < answer.session_lifetime_ms <= DAY_MS
            assert metadata(wire).brokers
            assert principals(serving, SASL) == {"User:alice"}


@pytest.mark.parametrize(
    ("token_id", "mac", "extension"),
    [(None, b"wrong", "true"), ("unknown", None, "true"), (None, None, ""), (None, None, "false")],
)
def test_wrong_tokens_are_refused(
    serving: Serving, alice: Wire, token_id: str | None, mac: bytes | None, extension: str
) -> None:
    token = create(alice)
    with serving.connect(SASL) as wire:
        answer = by_token(wire, token_id or token.token_id, mac or token.hmac, extension=extension)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "invalid credentials" in answer.error_message
    serving.expect_line("unknown user or wrong password")


def test_a_connection_by_token_gets_no_tokens(serving: Serving, alice: Wire) -> None:
    token = create(alice)
    not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    with serving.connect(SASL) as wire, serving.connect(OPEN) as anonymous:
        by_token(wire, token.token_id, token.hmac)
        for each in (wire, anonymous):
            assert create(each).error_code == not_allowed
            for request in (
                RenewDelegationTokenRequest(hmac=token.hmac),
                ExpireDelegationTokenRequest(hmac=token.hmac),
                DescribeDelegationTokenRequest(owners=None),
            ):
                assert each.ask(request).error_code == not_allowed


def test_owners_and_renewers_see_a_token(serving: Serving, alice: Wire, bob: Wire) -> None:
    token, own = create(alice, "bob"), create(alice)
    assert set(shown(alice, all_owners=True)) == {token.token_id, own.token_id}
    assert shown(bob, all_owners=True) == [token.token_id]
    assert shown(bob, "alice") == [token.token_id]
    assert shown(bob, "carol") == shown(bob) == []
    (described,) = bob.ask(DescribeDelegationTokenRequest(owners=None)).tokens
    assert described.hmac == token.hmac
    assert [each.principal_name for each in described.renewers] == ["bob"]
    assert described.token_requester_principal_name == "alice"
    for wire in _client(serving, "carol", "c"):
        assert shown(wire, all_owners=True) == []


def test_a_token_for_another_user_needs_a_right(serving: Serving, alice: Wire, bob: Wire) -> None:
    another = {"owner_principal_type": "User", "owner_principal_name": "bob"}
    refused = create(alice, **another)
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert create(bob, **another).error_code == 0, "it is oneself"
    from barnabas.security.authorizer import AllowAll

    serving.broker.authorizer = AllowAll()
    token = create(alice, **another)
    assert (token.principal_name, token.token_requester_principal_name) == ("bob", "alice")


def test_renewers_must_be_users(alice: Wire) -> None:
    group = CreatableRenewers(principal_type="Group", principal_name="x")
    answer = alice.ask(CreateDelegationTokenRequest(renewers=[group]))
    assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


def test_renewing_and_expiring(serving: Serving, alice: Wire, bob: Wire) -> None:
    token = create(alice, max_lifetime_ms=2 * DAY_MS)
    renew = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=9 * DAY_MS)
    assert bob.ask(renew).error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert alice.ask(renew).expiry_timestamp_ms == token.issue_timestamp_ms + 2 * DAY_MS
    unknown = RenewDelegationTokenRequest(hmac=b"unknown")
    assert alice.ask(unknown).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    soon = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=1000)
    assert alice.ask(soon).error_code == 0
    with serving.connect(SASL) as wire:
        assert 0 < by_token(wire, token.token_id, token.hmac).session_lifetime_ms <= 1000
        serving.let_pass(1001)
        wire.send(MetadataRequest(topics=[]), 12)
        wire.expect_close()
    serving.expect_line("its session has ended, and was not renewed")
    assert alice.ask(renew).error_code == ErrorCode.DELEGATION_TOKEN_EXPIRED
    with serving.connect(SASL) as wire:
        answer = by_token(wire, token.token_id, token.hmac)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    serving.expect_line("unknown user or wrong password")
    now = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
    assert alice.ask(now).error_code == 0
    assert shown(alice, all_owners=True) == []
    assert alice.ask(now).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_tokens_are_stored_as_kafka_stores_them(serving: Serving, alice: Wire) -> None:
    token = create(alice, "bob")
    tree = serving.broker.tree

    async def read() -> tuple[bytes, list[bytes]]:
        data, _ = await tree.get(f"{nodes.DELEGATION_TOKENS}/{token.token_id}")
        names = await tree.children(nodes.DELEGATION_TOKEN_CHANGES)
        return data, [
            (await tree.get(f"{nodes.DELEGATION_TOKEN_CHANGES}/{name}"))[0] for name in names
        ]

    data, notices = asyncio.run_coroutine_threadsafe(read(), serving.broker.loop).result(60)
    assert (
        data
        == (
            '{"version":3,"owner":"User%3Aalice","tokenRequester":"User%3Aalice",'
            f'"renewers":["User%3Abob"],"issueTimestamp":{token.issue_timestamp_ms},'
            f'"maxTimestamp":{token.max_timestamp_ms},"expiryTimestamp":{token.expiry_timestamp_ms},'
            f'"tokenId":"{token.token_id}"}}'
        ).encode()
    )
    assert notices == [token.token_id.encode()]


def test_tokens_survive_a_restart(tmp_path: Path) -> None:
    serving = Serving(tmp_path, OPTIONS)
    with serving, serving.connect(SASL) as wire:
        log_in(wire, "alice", "a")
        token = create(wire)
    with serving, serving.connect(SASL) as wire:
        assert by_token(wire, token.token_id, token.hmac).error_code == 0


def test_expired_tokens_are_swept(serving: Serving, alice: Wire) -> None:
    token, kept = create(alice, max_lifetime_ms=1000), create(alice)
    serving.let_pass(1001)
    assert set(shown(alice, all_owners=True)) == {token.token_id, kept.token_id}
    sweep = serving.broker.parts.housekeeping._expire_tokens
    asyncio.run_coroutine_threadsafe(sweep(), serving.broker.loop).result(60)
    assert shown(alice, all_owners=True) == [kept.token_id]


def test_without_a_secret_tokens_are_disabled(tmp_path: Path) -> None:
    options = {name: value for name, value in OPTIONS.items() if "secret" not in name}
    with Serving(tmp_path, options) as serving, serving.connect(SASL) as wire:
        log_in(wire, "alice", "a")
        disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert create(wire).error_code == disabled
        for request in (
            RenewDelegationTokenRequest(),
            ExpireDelegationTokenRequest(),
            DescribeDelegationTokenRequest(owners=None),
        ):
            assert wire.ask(request).error_code == disabled
