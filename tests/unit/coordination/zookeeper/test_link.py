"""Logins, certificates and ACLs, against a real ZooKeeper that asks for them."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from kazoo.exceptions import AuthFailedError, SessionExpiredError
from tests.certificates import Authority
from tests.network.wire_cutter import WireCutter
from tests.unit.coordination.conftest import ZooKeeperService
from tests.unit.coordination.zookeeper.test_coordination import Reached
from tests.zookeeper import USERS, SecuredServer

from barnabas.config.broker import BrokerOptions
from barnabas.coordination.contract import (
    NoPermission,
    ServiceUnavailable,
    SessionExpired,
    SessionState,
)
from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination
from barnabas.coordination.zookeeper.link import Answered, Link
from barnabas.coordination.zookeeper.settings import settings_of

SET_ACL = {"zookeeper.set.acl": "true"}
PATIENCE_S = 120
READERS = ("world", "anyone", ["READ"])


async def connect(options: BrokerOptions) -> ZooKeeperCoordination:
    tree = ZooKeeperCoordination(settings_of(options))
    await tree.start()
    return tree


async def refusal(options: BrokerOptions) -> str:
    """Return why no session can be opened; no secret is in it."""
    tree = ZooKeeperCoordination(settings_of(options))
    with pytest.raises(NoPermission) as refused:
        async with asyncio.timeout(PATIENCE_S):
            await tree.start()
    assert tree.state is SessionState.CLOSED
    said = str(refused.value)
    assert not [secret for secret in (*USERS.values(), "wr0ng") if secret in said]
    return said


async def acl_of(tree: Any, path: str) -> list[tuple[str, str, list[str]]]:
    client = tree._link._client
    result = client.get_acls_async(tree._link._full(path))
    acls, _ = await asyncio.to_thread(result.get)
    return [(each.id.scheme, each.id.id, each.acl_list) for each in acls]


async def test_nodes_belong_to_the_user_that_logged_in(secured: SecuredServer) -> None:
    chroot = secured.new_chroot()
    broker = await connect(secured.options(chroot, **secured.login("broker"), **SET_ACL))
    mine = ("sasl", "broker", ["ALL"])
    await broker.create("/brokers/ids", make_parents=True)
    await broker.create("/brokers/ids/1", ephemeral=True)
    await broker.create("/config/users/alice", b"hash", make_parents=True)
    await broker.create("/consumers")
    for path in ("/", "/brokers/ids", "/brokers/ids/1", "/config"):
        assert await acl_of(broker, path) == [mine, READERS], path
    for path in ("/config/users", "/config/users/alice"):
        assert await acl_of(broker, path) == [mine], path
    assert await acl_of(broker, "/consumers") == [("world", "anyone", ["ALL"])]
    other = await connect(secured.options(chroot, **secured.login("other")))
    nobody = await connect(secured.options(chroot))
    for stranger in (other, nobody):
        assert await stranger.children("/brokers/ids") == ["1"]
        with pytest.raises(NoPermission, match=r"/config/users/alice: not allowed .* log in as"):
            await stranger.get("/config/users/alice")
        with pytest.raises(NoPermission, match="/brokers/ids/1: not allowed by ZooKeeper's ACL"):
            await stranger.delete("/brokers/ids/1")
    friend = await connect(secured.options(chroot, **secured.login("broker")))
    assert (await friend.get("/config/users/alice"))[0] == b"hash"
    for tree in (broker, other, nobody, friend):
        await tree.close()


@pytest.mark.parametrize("user", ["broker", "nobody"])
async def test_a_wrong_password_and_an_unknown_user(
    secured: SecuredServer, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    """There is an answer at once, not a timeout, and no secret in it or in the log."""
    caplog.set_level(logging.DEBUG)
    said = await refusal(secured.options(**secured.login(user, "wr0ng")))
    assert said.endswith(f"rejected the login of user '{user}'")
    assert "wr0ng" not in caplog.text


async def test_a_server_without_sasl(zookeeper: Any, secured: SecuredServer) -> None:
    """The password would be of no use there, and ACLs would fail one by one."""
    options = secured.options(
        **secured.login("broker"), **{"zookeeper.connect": zookeeper.address, **SET_ACL}
    )
    assert "has no SASL" in await refusal(options)


async def test_a_server_that_demands_a_login(zookeeper_classpath: str, tmp_path: Path) -> None:
    """Without one there is an error that says what to set, though the session was granted."""
    demanding = SecuredServer(
        zookeeper_classpath,
        tmp_path,
        **{"enforce.auth.enabled": "true", "enforce.auth.schemes": "sasl"},
    )
    with demanding.server:
        for chroot in ("", "/deep"):
            said = await refusal(demanding.options(chroot))
            assert "demands a login (SASL): set java.security.auth.login.config" in said
        wrong = demanding.options(**demanding.login("broker", "wr0ng"))
        assert "rejected the login of user 'broker'" in await refusal(wrong)
        right = await connect(demanding.options("/deep", **demanding.login("broker")))
        await right.create("/a")
        await right.close()


async def test_it_logs_in_again_after_a_cut_and_in_the_next_session(secured: SecuredServer) -> None:
    chroot = secured.new_chroot()
    with WireCutter(secured.server.port) as cutter:
        options = secured.options(chroot, **secured.login("broker"), **SET_ACL)
        settings = replace(settings_of(options), servers=(cutter.address,))
        tree = ZooKeeperCoordination(settings)
        await tree.start()
        await tree.create("/brokers/ids/1", ephemeral=True, make_parents=True)
        session = tree.session_id
        reached = Reached(tree)
        cutter.cut()
        cutter.restore()  # which ends what was open
        await reached.state(SessionState.SUSPENDED)
        await tree.set("/brokers/ids", b"only the owner may")
        assert tree.session_id == session
        twin = ZooKeeperService(secured.server, chroot)
        await twin.expire(tree)
        await tree.start()
        assert tree.session_id != session
        await tree.set("/brokers/ids", b"again")
        assert await acl_of(tree, "/brokers/ids") == [("sasl", "broker", ["ALL"]), READERS]
        await tree.close()


async def test_a_password_that_changed_meanwhile(secured: SecuredServer) -> None:
    """The session ends, and the next attempt says why; with the old password back, it works."""
    chroot = secured.new_chroot()
    tree = ZooKeeperCoordination(
        settings_of(secured.options(chroot, **secured.login("broker"), **SET_ACL))
    )
    await tree.start()
    right = tree._session._settings
    assert right.login is not None
    reached = Reached(tree)
    tree._session._settings = replace(right, login=replace(right.login, password="wr0ng"))
    await ZooKeeperService(secured.server, chroot).expire(tree)
    await reached.state(SessionState.EXPIRED)
    with pytest.raises(NoPermission, match="rejected the login"):
        await tree.start()
    tree._session._settings = right
    await tree.start()
    await tree.create("/brokers")
    await tree.close()


@pytest.mark.parametrize(
    ("failure", "error"),
    [(SessionExpiredError(), SessionExpired), (AuthFailedError(), NoPermission)],
)
async def test_a_session_that_ends_while_it_is_opened(
    secured: SecuredServer, monkeypatch: pytest.MonkeyPatch, failure: Exception, error: type
) -> None:
    """These are errors after which a broker tries again."""

    def sync(_: Link, answered: Answered) -> None:
        answered(None, failure)

    monkeypatch.setattr(Link, "sync", sync)
    tree = ZooKeeperCoordination(settings_of(secured.options()))
    with pytest.raises(error):
        await tree.start()
    assert tree.state is SessionState.CLOSED


@pytest.mark.parametrize("kind", ["pem", "pkcs12", "jks"])
async def test_a_certificate_is_an_identity(
    secured: SecuredServer, tmp_path: Path, kind: str
) -> None:
    chroot = secured.new_chroot()
    issued = secured.authority.issue("broker-1")
    store = {
        "pem": lambda: issued.write_pem(tmp_path / "own.pem", "hush"),
        "pkcs12": lambda: issued.write_pkcs12(tmp_path / "own.p12", "hush"),
        "jks": lambda: issued.write_jks(tmp_path / "own.jks", "hush"),
    }[kind]()
    own = {
        "zookeeper.ssl.keystore.location": str(store),
        "zookeeper.ssl.keystore.password": "hush",
        "zookeeper.ssl.keystore.type": kind,
        "zookeeper.ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    }
    broker = await connect(secured.options(chroot, tls=True, **own, **SET_ACL))
    used: Any = broker._link
    assert used._handler._socket.cipher()[0] == "ECDHE-ECDSA-AES256-GCM-SHA384"
    await broker.create("/config/users/alice", b"hash", make_parents=True)
    assert await acl_of(broker, "/config/users/alice") == [("x509", "CN=broker-1", ["ALL"])]
    nobody = await connect(secured.options(chroot, tls=True))
    with pytest.raises(NoPermission):
        await nobody.get("/config/users/alice")
    await broker.close()
    await nobody.close()


async def test_a_login_over_tls(secured: SecuredServer) -> None:
    options = secured.options(secured.new_chroot(), tls=True, **secured.login("broker"), **SET_ACL)
    broker = await connect(options)
    await broker.create("/brokers")
    assert await acl_of(broker, "/brokers") == [("sasl", "broker", ["ALL"]), READERS]
    await broker.close()


async def test_without_an_identity_acls_are_an_error_that_says_so(
    secured: SecuredServer, tmp_path: Path
) -> None:
    """A certificate is configured, but this port does not ask for one."""
    own = secured.authority.issue("broker-1").write_pem(tmp_path / "own.pem")
    options = secured.options(
        **SET_ACL,
        **{
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.keystore.location": str(own),
        },
    )
    tree = ZooKeeperCoordination(replace(settings_of(options), tls=None))
    await tree.start()
    with pytest.raises(NoPermission, match=r"set\.acl=true, but ZooKeeper does not know"):
        await tree.create("/unknown-creator")
    await tree.close()


async def test_a_server_that_is_not_trusted_is_named_with_the_reason(
    secured: SecuredServer, tmp_path: Path
) -> None:
    """Another authority, another name, a revoked certificate, no TLS at all."""
    # The first handshake of a cold JVM on a busy machine may outlast any short timeout.
    await (await connect(secured.options(tls=True))).close()
    short = {"zookeeper.connection.timeout.ms": "5000"}
    other = Authority("other").write(tmp_path / "other.pem")
    valid, revoked = tmp_path / "valid.pem", tmp_path / "revoked.pem"
    valid.write_text(secured.authority.revoke())
    revoked.write_text(secured.authority.revoke(secured.own))
    cases = {
        "unable to get local issuer": {"zookeeper.ssl.truststore.location": str(other)},
        "Hostname mismatch": {"zookeeper.connect": f"127.1:{secured.tls_port}"},
        "certificate revoked": {"barnabas.zookeeper.ssl.crl.location": str(revoked)},
        "TLS: ": {"zookeeper.connect": secured.server.address},
    }
    trees = [
        ZooKeeperCoordination(settings_of(secured.options(tls=True, **{**short, **more})))
        for more in cases.values()
    ]
    failures = await asyncio.gather(*(tree.start() for tree in trees), return_exceptions=True)
    for said, failure in zip(cases, failures, strict=True):
        assert isinstance(failure, ServiceUnavailable)
        assert re.search(rf"connection\.timeout\.ms\): .*{said}", str(failure)), failure
    unnamed = secured.options(
        tls=True,
        **cases["Hostname mismatch"],
        **{
            "zookeeper.ssl.endpoint.identification.algorithm": "",
            "zookeeper.ssl.crl.enable": "true",
            "barnabas.zookeeper.ssl.crl.location": str(valid),
        },
    )
    await (await connect(unnamed)).close()
