"""Brokers that reach each other over TLS: requests, replication and the controller's channels."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from tests.certificates import Authority, Issued
from tests.unit.broker.neighbours import broker, create, until
from tests.unit.broker.serving import batch_of

from barnabas.broker.broker import Broker
from barnabas.broker.cluster.dialer import Dialer
from barnabas.client.addresses import Address
from barnabas.config.broker import BrokerOptions
from barnabas.coordination.memory import MemoryCoordination, MemoryStore
from barnabas.metadata import tree_schema
from barnabas.metadata.topic_store import NewTopic
from barnabas.metrics.catalogue.network import SUCCESSFUL_REAUTHENTICATIONS
from barnabas.model.errors import ConfigError, RequestError
from barnabas.security.acl.binding import Binding, Entry, Pattern, Permission
from barnabas.security.acl.filter import BindingFilter
from barnabas.security.authorizer import Operation, ResourceType
from barnabas.security.sasl.scram_credentials import SHA_256, ScramCredential

ROOT = Authority("root")


def secured(
    store: MemoryStore, folder: Path, number: int, issued: Issued, **options: str
) -> Broker:
    """Return a broker that others reach with certificates alone."""
    folder.mkdir(exist_ok=True)
    named = {
        "listeners": "PEERS://127.0.0.1:0",
        "listener.security.protocol.map": "PEERS:SSL",
        "inter.broker.listener.name": "PEERS",
        "ssl.client.auth": "required",
        "ssl.keystore.location": str(issued.write_pem(folder / f"{number}.pem")),
        "ssl.truststore.location": str(ROOT.write(folder / "ca.pem")),
        **options,
    }
    return broker(store, folder, number, **named)


def test_replicas_follow_over_tls(tmp_path: Path) -> None:
    async def scene() -> None:
        store = MemoryStore()
        brokers = [
            secured(store, tmp_path, number, ROOT.issue(f"broker-{number}")) for number in range(2)
        ]
        for each in brokers:
            await each.start()
        leader, follower = brokers
        await create(leader, NewTopic("t", 1, 2, assignment={0: (0, 1)}))
        await until(lambda: ("t", 0) in follower.partitions, "the follower has its role")
        partition = leader.partitions[("t", 0)]
        leader.partitions.append(partition, batch_of(["over TLS"]), -1, 9, leader.now_ms())
        await until(lambda: partition.log.high_watermark == 1, "the follower has fetched it")
        principals = {
            str(connection.session.principal)
            for listener in leader.parts.network._listeners
            for connection in listener.connections
        }
        assert principals == {"User:CN=broker-1"}
        for each in reversed(brokers):
            await each.stop()

    asyncio.run(scene())


def test_brokers_log_in_to_each_other_where_acls_decide(tmp_path: Path) -> None:
    """Over SASL_SSL, with an authorizer that lets nobody but the brokers act as one."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    credentials = 'username="peer" password="secret" user_peer="secret"'
    options = {
        "listener.security.protocol.map": "PEERS:SASL_SSL",
        "ssl.client.auth": "none",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.peers.plain.sasl.jaas.config": f"{module} {credentials};",
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:peer",
    }

    async def scene() -> None:
        store = MemoryStore()
        brokers = [
            secured(store, tmp_path, number, ROOT.issue(f"broker-{number}"), **options)
            for number in range(2)
        ]
        for each in brokers:
            await each.start()
        leader, follower = brokers
        await create(leader, NewTopic("t", 1, 2, assignment={0: (0, 1)}))
        await until(lambda: ("t", 0) in follower.partitions, "the follower has its role")
        partition = leader.partitions[("t", 0)]
        leader.partitions.append(partition, batch_of(["secured"]), -1, 9, leader.now_ms())
        await until(lambda: partition.log.high_watermark == 1, "the follower has fetched it")
        principals = {
            str(connection.session.principal)
            for each in brokers
            for listener in each.parts.network._listeners
            for connection in listener.connections
        }
        assert principals == {"User:peer"}
        for each in reversed(brokers):
            await each.stop()

    asyncio.run(scene())


PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
LOGGED_IN = {
    "listener.security.protocol.map": "PEERS:SASL_SSL",
    "ssl.client.auth": "none",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.peers.plain.sasl.jaas.config": (
        f'{PLAIN_LOGIN} username="peer" password="secret" user_peer="secret";'
    ),
}


def visitors(host: Broker, listener: str) -> dict[int, str]:
    """Return who is connected to a listener, by connection."""
    (found,) = [each for each in host.parts.network._listeners if each.name == listener]
    return {id(each): str(each.session.principal) for each in found.connections}


async def follow(leader: Broker, follower: Broker, topic: str) -> None:
    """Have one broker follow another in a new topic, until it has a record."""
    await create(leader, NewTopic(topic, 1, 2, assignment={0: (0, 1)}))
    await until(lambda: (topic, 0) in follower.partitions, "the follower has its role")
    partition = leader.partitions[(topic, 0)]
    leader.partitions.append(partition, batch_of(["x"]), -1, 9, leader.now_ms())
    await until(lambda: partition.log.high_watermark == 1, "the follower has fetched it")


def test_the_control_plane_has_a_login_of_its_own(tmp_path: Path) -> None:
    """Another protocol, another mechanism and other credentials than between brokers otherwise."""
    options = {
        **LOGGED_IN,
        "listeners": "PEERS://127.0.0.1:0,CONTROL://127.0.0.1:0",
        "listener.security.protocol.map": "PEERS:SASL_SSL,CONTROL:SASL_PLAINTEXT",
        "control.plane.listener.name": "CONTROL",
        "listener.name.control.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.control.sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "listener.name.control.scram-sha-256.sasl.jaas.config": (
            f'{SCRAM_LOGIN} username="controller" password="other";'
        ),
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:peer;User:controller",
    }

    async def scene() -> None:
        store = MemoryStore()
        tree = MemoryCoordination(store)
        await tree.start()
        stored = ScramCredential.of_password(SHA_256, "other", b"salt of 16 bytes").encode()
        users = tree_schema.encode_config({"SCRAM-SHA-256": stored})
        await tree.create("/config/users/controller", users, make_parents=True)
        leader, follower = (
            secured(store, tmp_path, number, ROOT.issue(f"broker-{number}"), **options)
            for number in range(2)
        )
        await leader.start()
        await follower.start()
        await follow(leader, follower, "t")
        assert set(visitors(follower, "CONTROL").values()) == {"User:controller"}
        assert set(visitors(leader, "PEERS").values()) == {"User:peer"}
        await follower.stop()
        await leader.stop()

    asyncio.run(scene())


def test_a_control_plane_without_a_login_fails_the_start(tmp_path: Path) -> None:
    options = {
        **LOGGED_IN,
        "listeners": "PEERS://127.0.0.1:0,CONTROL://127.0.0.1:0",
        "listener.security.protocol.map": "PEERS:SASL_SSL,CONTROL:SASL_PLAINTEXT",
        "control.plane.listener.name": "CONTROL",
        "listener.name.control.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.control.sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    }

    async def scene() -> None:
        alone = secured(MemoryStore(), tmp_path, 0, ROOT.issue("broker-0"), **options)
        with pytest.raises(ConfigError, match=r"listener\.name\.control\.scram-sha-256"):
            await alone.start()

    asyncio.run(scene())


def test_brokers_renew_their_logins(tmp_path: Path) -> None:
    """A connection between brokers lives on when its login has expired twice over."""
    lifetime_ms = 1300  # within a second of the last, nobody may log in again

    async def scene() -> None:
        store = MemoryStore()
        leader, follower = (
            secured(
                store,
                tmp_path,
                number,
                ROOT.issue(f"broker-{number}"),
                **LOGGED_IN,
                **{"listener.name.peers.connections.max.reauth.ms": str(lifetime_ms)},
            )
            for number in range(2)
        )
        await leader.start()
        await follower.start()
        await follow(leader, follower, "t")
        before = visitors(leader, "PEERS")
        end = asyncio.get_running_loop().time() + 2.5 * lifetime_ms / 1000
        await until(lambda: asyncio.get_running_loop().time() > end, "logins have expired")
        partition = leader.partitions[("t", 0)]
        leader.partitions.append(partition, batch_of(["later"]), -1, 9, leader.now_ms())
        await until(lambda: partition.log.high_watermark == 2, "the follower has fetched it")
        assert set(visitors(leader, "PEERS")) >= set(before), "no connection was replaced"
        assert leader.metrics.value(SUCCESSFUL_REAUTHENTICATIONS, "PEERS", "0") >= 2
        await follower.stop()
        await leader.stop()

    asyncio.run(scene())


def test_brokers_need_the_right_to_act_as_such(tmp_path: Path) -> None:
    """CLUSTER_ACTION, by an ACL if they are no super users; without it they do not follow."""
    options = {
        **LOGGED_IN,
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:admin",
        "replica.lag.time.max.ms": "500",
    }
    right = Binding(
        Pattern(ResourceType.CLUSTER, "kafka-cluster"),
        Entry("User:peer", "*", Operation.CLUSTER_ACTION, Permission.ALLOW),
    )

    async def scene() -> None:
        store = MemoryStore()
        leader, follower = (
            secured(store, tmp_path, number, ROOT.issue(f"broker-{number}"), **options)
            for number in range(2)
        )
        await leader.start()
        assert leader.acls is not None
        assert await leader.acls.create([right]) == [None]
        await follower.start()
        await follow(leader, follower, "t")
        partition = leader.partitions[("t", 0)]
        for number in range(2):
            await leader.acls.delete([BindingFilter(principal="User:peer")])
            leader.partitions.append(partition, batch_of(["alone"]), -1, 9, leader.now_ms())
            await until(lambda: len(partition.isr) == 1, "the follower is not served")
            assert await leader.acls.create([right]) == [None]
            await until(lambda: len(partition.isr) == 2, "the follower is back")
            await until(
                lambda n=number: follower.partitions[("t", 0)].log.log_end_offset == 2 + n,  # type: ignore[misc]
                "the follower has fetched it",
            )
        await follower.stop()
        await leader.stop()

    asyncio.run(scene())


def test_the_name_in_the_certificate_is_checked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker whose certificate is for another host is not talked to."""
    caplog.set_level(logging.INFO, "barnabas")

    async def scene() -> None:
        store = MemoryStore()
        first = secured(store, tmp_path, 0, ROOT.issue("broker-0"))
        elsewhere = ROOT.issue("broker-1", hosts=["elsewhere"])
        second = secured(store, tmp_path, 1, elsewhere)
        await first.start()
        starting = asyncio.create_task(second.start())
        await until(lambda: "IP address mismatch" in caplog.text, "the controller rejects it")
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await first.stop()

    asyncio.run(scene())


def test_the_check_of_the_name_can_be_disabled(tmp_path: Path) -> None:
    async def scene() -> None:
        store = MemoryStore()
        unchecked = {"ssl.endpoint.identification.algorithm": ""}
        elsewhere = ROOT.issue("broker", hosts=["elsewhere"])
        brokers = [secured(store, tmp_path, n, elsewhere, **unchecked) for n in range(2)]
        for each in brokers:
            await each.start()
        await until(lambda: len(brokers[1].cluster.brokers) == 2, "they know each other")
        for each in reversed(brokers):
            await each.stop()

    asyncio.run(scene())


def test_a_listener_that_needs_tls_is_not_dialled_without_it() -> None:
    options = BrokerOptions.parse({"listeners": "SSL://:1", "inter.broker.listener.name": "SSL"})
    dialer = Dialer(lambda: options, lambda listener: None, lambda listener: None)
    with pytest.raises(RequestError, match="listener SSL is not open on this broker"):
        asyncio.run(
            dialer.open("SSL", Address("127.0.0.1", 1), client_id="x", request_timeout_ms=1)
        )
