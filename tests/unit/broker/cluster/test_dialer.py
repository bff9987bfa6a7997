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
from barnabas.coordination.memory import MemoryStore
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.errors import RequestError

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
