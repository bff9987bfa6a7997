"""Who may do what, across kinds: one broker of ours and one of Apache Kafka 3.9, on one ZooKeeper.

The brokers log in to ZooKeeper, whose nodes belong to them, and to each other over SASL_SSL. Users,
ACLs, quotas and tokens that are made through one of them hold at the other, and no longer once they
are removed: made by Kafka's tools through ours, and by requests through either.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from tests.unit.broker.serving import Serving, batch_of, wait_for
from tests.unit.coordination.zookeeper.test_link import READERS, acl_of
from tests.unit.security.sasl.clients import ScramClient
from tests.zookeeper import SecuredServer, zookeeper_classpath  # noqa: F401
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import free_port

from barnabas.client.addresses import Address
from barnabas.client.authentication import Authentication, Mechanism
from barnabas.client.connection import Connection
from barnabas.client.errors import AuthenticationFailedError
from barnabas.client.sasl.plain import Plain
from barnabas.client.sasl.scram import Scram
from barnabas.coordination.contract import NoNode
from barnabas.coordination.zookeeper.acl_migration import change_acls
from barnabas.coordination.zookeeper.coordination import ZooKeeperCoordination
from barnabas.coordination.zookeeper.node_acls import Access, access_of
from barnabas.coordination.zookeeper.settings import settings_of
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.wire.messages.controlled_shutdown import ControlledShutdownRequest
from barnabas.wire.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.update_metadata import UpdateMetadataRequest
from barnabas.wire.schema import Message

pytestmark = pytest.mark.interop

DEADLINE_S = 120.0
OURS, THEIRS = 0, 1
KINDS = {OURS: "ours", THEIRS: "theirs"}
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
REAUTHENTICATION_MS = 2000
TOPIC, CLUSTER, LITERAL, ALLOW = 2, 4, 3, 3
WRITE, CLUSTER_ACTION = 4, 9
SHA_256, ITERATIONS = 1, 4096
BY_NAME = 9
"""A version of Produce in which topics have names."""

Login = Callable[[], Mechanism]
ADMIN: Login = partial(Plain, "admin", "adm1n")
BOB: Login = partial(Plain, "bob", "b0b")


class TokenLogin:
    """SCRAM with a delegation token in the place of a user."""

    def __init__(self, token_id: str, hmac: bytes) -> None:
        self._client = ScramClient("sha256", token_id, b64encode(hmac).decode(), "a-nonce")
        self._challenged = self.done = False

    async def first(self) -> bytes:
        return self._client.first(",tokenauth=true")

    async def next(self, challenge: bytes) -> bytes:
        if not self._challenged:
            self._challenged = True
            return self._client.final(challenge)
        assert challenge == self._client.verifier()
        self.done = True
        return b""


class MixedCluster:
    """A ZooKeeper that asks for logins, one broker of ours and one of theirs."""

    def __init__(self, classpath: str, kafka: Distribution, folder: Path) -> None:
        (folder / "zookeeper").mkdir()
        self.zookeeper = SecuredServer(classpath, folder / "zookeeper")
        self.kafka = kafka
        self._folder = folder
        self._ports = {number: (free_port(), free_port()) for number in KINDS}
        self._stack = ExitStack()
        self.config = folder / "admin.properties"
        self.config.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
            f'sasl.jaas.config={PLAIN_LOGIN} username="admin" password="adm1n";\n'
        )

    def __enter__(self) -> MixedCluster:
        try:
            self._stack.enter_context(self.zookeeper.server)
            self._start_ours()
            # The brokers are no super users: this is what lets them act as brokers.
            peer = ACL(CLUSTER, "kafka-cluster", CLUSTER_ACTION, "User:peer")
            self.allow(OURS, peer)
            self._start_theirs()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def address(self, number: int) -> str:
        return f"127.0.0.1:{self._ports[number][1]}"

    def _options(self, number: int) -> dict[str, str]:
        peers, clients = self._ports[number]
        authority = self.zookeeper.authority
        folder = self._folder
        own = authority.issue(f"broker-{number}").write_pkcs12(folder / f"{number}.p12", "pw")
        trusted = authority.write_pkcs12(folder / "trust.p12", "pw")
        peer = f'{PLAIN_LOGIN} username="peer" password="p33r" user_peer="p33r";'
        users = 'user_admin="adm1n" user_bob="b0b"'
        return {
            "listeners": f"PEERS://127.0.0.1:{peers},CLIENTS://127.0.0.1:{clients}",
            "listener.security.protocol.map": "PEERS:SASL_SSL,CLIENTS:SASL_PLAINTEXT",
            "inter.broker.listener.name": "PEERS",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.peers.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.peers.plain.sasl.jaas.config": peer,
            "listener.name.peers.connections.max.reauth.ms": str(REAUTHENTICATION_MS),
            "listener.name.clients.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.clients.plain.sasl.jaas.config": f"{PLAIN_LOGIN} {users};",
            "listener.name.clients.scram-sha-256.sasl.jaas.config": f"{SCRAM_LOGIN};",
            "ssl.keystore.location": str(own),
            "ssl.keystore.password": "pw",
            "ssl.keystore.type": "PKCS12",
            "ssl.truststore.location": str(trusted),
            "ssl.truststore.password": "pw",
            "ssl.truststore.type": "PKCS12",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:admin",
            "delegation.token.secret.key": "shared-by-all",
            "zookeeper.set.acl": "true",
            "zookeeper.session.timeout.ms": "18000",
            "default.replication.factor": "2",
            "min.insync.replicas": "2",
            "replica.lag.time.max.ms": "5000",
            "auto.leader.rebalance.enable": "false",
            "log.cleaner.enable": "false",
            "quota.window.num": "3",
        }

    def _start_ours(self) -> None:
        options = {
            **self._options(OURS),
            **self.zookeeper.login("broker"),
            "zookeeper.connect": f"{self.zookeeper.server.address}/kafka",
        }
        self.ours = Serving(self._folder / "ours", options)
        self.ours.start()
        self._stack.callback(self.ours.kill)

    def _start_theirs(self) -> None:
        ((name, path),) = self.zookeeper.login("broker").items()
        running = self.kafka.join(
            self._folder / "theirs",
            THEIRS,
            f"{self.zookeeper.server.address}/kafka",
            options=self._options(THEIRS),
            java_options=[f"-D{name}={path}"],
        )
        self._stack.callback(running.process.wait)
        self._stack.callback(running.process.kill)

    def ask(
        self, number: int, *requests: Message, login: Login = ADMIN, version: int | None = None
    ) -> Any:
        """Ask one broker, and no other, over one connection; return the last answer."""

        async def answers() -> Any:
            mechanism = "PLAIN" if isinstance(login(), Plain) else "SCRAM-SHA-256"
            host, port = self.address(number).split(":")
            connection = await Connection.open(
                Address(host, int(port)),
                client_id="mixed",
                login=Authentication(mechanism, lambda host: login(), random.random),
            )
            try:
                for request in requests:
                    last = await connection.send(request, version=version)
                return last
            finally:
                connection.close()

        return asyncio.run(answers())

    def tool(self, name: str, *words: str, at: int = OURS) -> str:
        """Run one of Kafka's tools as the administrator."""
        config = ("--command-config", str(self.config))
        done = self.kafka.run(name, "--bootstrap-server", self.address(at), *config, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def tree(self, act: Callable[[ZooKeeperCoordination], Any]) -> Any:
        """Do something in the tree, as the brokers' user."""
        options = self.zookeeper.options("/kafka", **self.zookeeper.login("broker"))

        async def acted() -> Any:
            tree = ZooKeeperCoordination(settings_of(options))
            await tree.start()
            try:
                return await act(tree)
            finally:
                await tree.close()

        return asyncio.run(acted())

    def make_controller(self, number: int) -> None:
        async def elect(tree: ZooKeeperCoordination) -> bool:
            try:
                found: int = json.loads((await tree.get("/controller"))[0])["brokerid"]
                if found != number:
                    await tree.delete("/controller")
            except NoNode:
                return False
            return found == number

        wait_for(lambda: self.tree(elect), f"broker {number} is the controller")
        for each in KINDS:
            wait_for(
                lambda each=each: (
                    self.ask(each, MetadataRequest(topics=[])).controller_id == number
                ),  # type: ignore[misc]
                "all know the controller",
            )

    def allow(self, at: int, *acls: ACL) -> None:
        answer = self.ask(at, CreateAclsRequest(creations=[each.creation() for each in acls]))
        assert [result.error_code for result in answer.results] == [0] * len(acls)

    def forbid(self, at: int, *acls: ACL) -> None:
        answer = self.ask(at, DeleteAclsRequest(filters=[each.filter() for each in acls]))
        assert [len(result.matching_acls) for result in answer.filter_results] == [1] * len(acls)

    def create(self, topic: str) -> None:
        """Create a topic whose partitions 0 and 1 are led by the broker of the same number."""
        controller = self.ask(OURS, MetadataRequest(topics=[])).controller_id
        assignments = [
            CreatableReplicaAssignment(partition_index=number, broker_ids=[number, 1 - number])
            for number in KINDS
        ]
        wanted = CreatableTopic(
            name=topic, num_partitions=-1, replication_factor=-1, assignments=assignments
        )
        answer = self.ask(
            controller, CreateTopicsRequest(topics=[wanted], timeout_ms=60_000, validate_only=False)
        )
        assert [result.error_code for result in answer.topics] == [0], answer
        for number in KINDS:
            wait_for(lambda number=number: self.in_sync(topic, number), "all are in sync")  # type: ignore[misc]

    def in_sync(self, topic: str, at: int) -> bool:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        (found,) = self.ask(at, request).topics
        states = [(each.leader_id, sorted(each.isr_nodes)) for each in found.partitions]
        return sorted(states) == [(OURS, [0, 1]), (THEIRS, [0, 1])]

    def produce(
        self, topic: str, at: int, login: Login, size: int = 10, timeout_ms: int = 30_000
    ) -> tuple[ErrorCode, int]:
        """Send two records to the partition that a broker leads; return the error and throttle."""
        request = ProduceRequest(
            acks=-1,
            timeout_ms=timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=topic,
                    partition_data=[
                        PartitionProduceData(index=at, records=batch_of([b"x" * size]))
                    ],
                )
            ],
        )
        answer = self.ask(at, request, request, login=login, version=BY_NAME)
        (partition,) = answer.responses[0].partition_responses
        return ErrorCode(partition.error_code), answer.throttle_time_ms

    def lets_in(self, at: int, login: Login) -> bool:
        try:
            self.ask(at, MetadataRequest(topics=[]), login=login)
        except AuthenticationFailedError:
            return False
        return True


class ACL:
    """One rule that allows something from everywhere."""

    def __init__(self, kind: int, name: str, operation: int, principal: str) -> None:
        self._rule = (kind, name, operation, principal)

    def creation(self) -> AclCreation:
        kind, name, operation, principal = self._rule
        return AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=LITERAL,
            principal=principal,
            host="*",
            operation=operation,
            permission_type=ALLOW,
        )

    def filter(self) -> DeleteAclsFilter:
        kind, name, operation, principal = self._rule
        return DeleteAclsFilter(
            resource_type_filter=kind,
            resource_name_filter=name,
            pattern_type_filter=LITERAL,
            principal_filter=principal,
            host_filter="*",
            operation=operation,
            permission_type=ALLOW,
        )


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory,
    zookeeper_classpath: str,  # noqa: F811
) -> Iterator[MixedCluster]:
    try:
        kafka = Distribution.fetch("3.9")
    except Unavailable as why:
        pytest.skip(str(why))
    with MixedCluster(zookeeper_classpath, kafka, tmp_path_factory.mktemp("mixed")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def topic(cluster: MixedCluster) -> str:
    cluster.create("orders")
    return "orders"


def everywhere(holds: Callable[[int], bool], what: str) -> None:
    for number, kind in KINDS.items():
        wait_for(partial(holds, number), f"{what} at {kind}")


# Ways to make and remove things: Kafka's tool through ours, requests through either.


def _scram(deletions: list[str] = (), upsertions: dict[str, str] = {}) -> Message:  # type: ignore[assignment]  # noqa: B006
    salt = b"pepper and salt"
    return AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=name, mechanism=SHA_256) for name in deletions],
        upsertions=[
            ScramCredentialUpsertion(
                name=name,
                mechanism=SHA_256,
                iterations=ITERATIONS,
                salt=salt,
                salted_password=hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, ITERATIONS),
            )
            for name, secret in upsertions.items()
        ],
    )


@pytest.mark.parametrize("maker", ["tool", "ours", "theirs"])
def test_users(cluster: MixedCluster, maker: str) -> None:
    """A password made through one logs in at both; once changed or removed, no longer."""
    name = f"user-{maker}"
    at = THEIRS if maker == "theirs" else OURS
    cluster.make_controller(at)  # which alone changes them
    first, second = (
        partial(Scram, "SCRAM-SHA-256", name, secret, os.urandom) for secret in ("one", "two")
    )
    entity = ("--entity-type=users", f"--entity-name={name}")

    def change(secret: str | None) -> None:
        if maker == "tool":
            how = (
                "--delete-config=SCRAM-SHA-256"
                if secret is None
                else f"--add-config=SCRAM-SHA-256=[iterations={ITERATIONS},password={secret}]"
            )
            cluster.tool("kafka-configs", *entity, "--alter", how)
        else:
            request = _scram([name]) if secret is None else _scram(upsertions={name: secret})
            assert [each.error_code for each in cluster.ask(at, request).results] == [0]

    everywhere(lambda each: not cluster.lets_in(each, first), "an unknown user is refused")
    change("one")
    everywhere(lambda each: cluster.lets_in(each, first), "the user is let in")
    assert not any(cluster.lets_in(each, second) for each in KINDS)
    change("two")
    everywhere(lambda each: not cluster.lets_in(each, first), "the old password is refused")
    everywhere(lambda each: cluster.lets_in(each, second), "the new password is taken")
    change(None)
    everywhere(lambda each: not cluster.lets_in(each, second), "the removed user is refused")


@pytest.mark.parametrize("maker", ["tool", "ours", "theirs"])
def test_acls(cluster: MixedCluster, topic: str, maker: str) -> None:
    at = THEIRS if maker == "theirs" else OURS
    rule = ACL(TOPIC, topic, WRITE, "User:bob")
    words = ("--allow-principal=User:bob", "--operation=Write", f"--topic={topic}")

    def answers(error: ErrorCode) -> Callable[[int], bool]:
        return lambda each: cluster.produce(topic, each, BOB)[0] is error

    everywhere(answers(ErrorCode.TOPIC_AUTHORIZATION_FAILED), "bob may not write")
    if maker == "tool":
        cluster.tool("kafka-acls", "--add", *words)
    else:
        cluster.allow(at, rule)
    everywhere(answers(ErrorCode.NONE), "bob may write")
    if maker == "tool":
        cluster.tool("kafka-acls", "--remove", "--force", *words)
    else:
        cluster.forbid(1 - at, rule)  # by the other one: it knows it as well
    everywhere(answers(ErrorCode.TOPIC_AUTHORIZATION_FAILED), "bob may no longer write")


@pytest.mark.parametrize("maker", ["tool", "ours", "theirs"])
def test_quotas(cluster: MixedCluster, topic: str, maker: str) -> None:
    at = THEIRS if maker == "theirs" else OURS
    rule = ACL(TOPIC, topic, WRITE, "User:bob")
    entity = ("--entity-type=users", "--entity-name=bob")

    def limit(rate: int | None) -> None:
        if maker == "tool":
            how = (
                "--delete-config=producer_byte_rate"
                if rate is None
                else f"--add-config=producer_byte_rate={rate}"
            )
            cluster.tool("kafka-configs", *entity, "--alter", how)
            return
        change = OpData(key="producer_byte_rate", value=float(rate or 0), remove=rate is None)
        entry = EntryData(entity=[EntityData(entity_type="user", entity_name="bob")], ops=[change])
        request = AlterClientQuotasRequest(entries=[entry], validate_only=False)
        assert [each.error_code for each in cluster.ask(at, request).entries] == [0]

    def throttles(each: int) -> bool:
        error, throttle_ms = cluster.produce(topic, each, BOB, 3000)
        return error is ErrorCode.NONE and throttle_ms > 0

    cluster.allow(at, rule)
    try:
        everywhere(
            lambda each: cluster.produce(topic, each, BOB, 3000) == (ErrorCode.NONE, 0),
            "bob is not throttled",
        )
        limit(1000)
        everywhere(throttles, "bob is throttled")
        limit(None)
        everywhere(lambda each: not throttles(each), "bob is no longer throttled")
    finally:
        cluster.forbid(at, rule)


@pytest.mark.parametrize("maker", ["tool", "ours", "theirs"])
def test_delegation_tokens(cluster: MixedCluster, maker: str) -> None:
    """A token made through one logs in at both, until it is expired through the other."""
    at = THEIRS if maker == "theirs" else OURS
    if maker == "tool":
        shown = cluster.tool("kafka-delegation-tokens", "--create", "--max-life-time-period=-1")
        found = re.search(r"^([\w-]{22})\s+(\S{86}==)\s+User:admin", shown, re.MULTILINE)
        assert found is not None, shown
        token_id, hmac = found[1], b64decode(found[2])
    else:
        made = cluster.ask(at, CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1))
        assert made.error_code == 0
        token_id, hmac = made.token_id, made.hmac
    login = partial(TokenLogin, token_id, hmac)
    everywhere(lambda each: cluster.lets_in(each, login), "the token is let in")
    assert not any(cluster.lets_in(each, partial(TokenLogin, token_id, b"x")) for each in KINDS)
    if maker == "tool":
        words = ("--expire", "--expiry-time-period=-1", f"--hmac={b64encode(hmac).decode()}")
        cluster.tool("kafka-delegation-tokens", *words)
    else:
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=-1)
        assert cluster.ask(1 - at, request).error_code == 0
    everywhere(lambda each: not cluster.lets_in(each, login), "the expired token is refused")


def test_only_brokers_act_as_brokers(cluster: MixedCluster) -> None:
    """Not even a super user's rights are needed by them, and no other user's suffice."""
    forged = UpdateMetadataRequest(
        controller_id=OURS, controller_epoch=1_000_000, topic_states=[], live_brokers=[]
    )
    leaving = ControlledShutdownRequest(broker_id=OURS, broker_epoch=-1)
    for number, kind in KINDS.items():
        for request in (forged, leaving):
            answer = cluster.ask(number, request, login=BOB)
            refused = ErrorCode(answer.error_code) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            assert refused, f"{type(request).__name__} at {kind}"


def test_brokers_reauthenticate(cluster: MixedCluster, topic: str) -> None:
    """They follow each other for longer than a login lasts, over the same connections."""

    def peers() -> dict[int, str]:
        (found,) = [
            each for each in cluster.ours.broker.parts.network._listeners if each.name == "PEERS"
        ]
        return {id(each): str(each.session.principal) for each in found.connections}

    wait_for(peers, "theirs follows ours")
    before = peers()
    assert set(before.values()) == {"User:peer"}
    end = time.monotonic() + REAUTHENTICATION_MS / 1000 * 2.5
    while time.monotonic() < end:
        for number in KINDS:
            assert cluster.produce(topic, number, ADMIN)[0] is ErrorCode.NONE
            assert cluster.in_sync(topic, number)
    assert set(before) & set(peers()), "a connection has outlived its first login"


def test_without_the_right_a_broker_is_no_follower(cluster: MixedCluster, topic: str) -> None:
    """Without CLUSTER_ACTION they fall behind; once it is given back, they catch up."""
    right = ACL(CLUSTER, "kafka-cluster", CLUSTER_ACTION, "User:peer")
    cluster.forbid(THEIRS, right)

    def refused(each: int) -> bool:
        return cluster.produce(topic, each, ADMIN, timeout_ms=500)[0] is not ErrorCode.NONE

    try:
        everywhere(refused, "nobody follows")
    finally:
        cluster.allow(OURS, right)
    everywhere(lambda each: cluster.produce(topic, each, ADMIN)[0] is ErrorCode.NONE, "followed")
    everywhere(lambda each: cluster.in_sync(topic, each), "in sync")


def test_nodes_of_both_kinds_have_the_same_acls(cluster: MixedCluster, topic: str) -> None:
    """Every node of the tree, whoever made it, and after Kafka's tool and ours for all of them."""
    mine = ("sasl", "broker", ["ALL"])
    expected = {
        Access.EVERYONE: [("world", "anyone", ["ALL"])],
        Access.CREATOR_AND_READERS: [mine, READERS],
        Access.CREATOR: [mine],
    }
    assert cluster.in_sync(topic, OURS)

    async def acls(tree: ZooKeeperCoordination) -> dict[str, Any]:
        found: dict[str, Any] = {}
        waiting = ["/"]
        while waiting:
            path = waiting.pop()
            try:
                found[path] = sorted(await acl_of(tree, path))
                waiting += [f"{path.rstrip('/')}/{name}" for name in await tree.children(path)]
            except NoNode:
                continue
        return found

    def all_as(restricted: bool) -> None:
        found = cluster.tree(acls)
        assert len(found) > 40
        rules = {path: sorted(expected[access_of(path, restricted=restricted)]) for path in found}
        assert {path: acl for path, acl in found.items() if acl != rules[path]} == {}

    def migrate(word: str) -> None:
        ((name, path),) = cluster.zookeeper.login("broker").items()
        done = cluster.kafka.run(
            "zookeeper-security-migration",
            f"--zookeeper.acl={word}",
            f"--zookeeper.connect={cluster.zookeeper.server.address}/kafka",
            java_options=[f"-D{name}={path}"],
        )
        assert done.returncode == 0, done.stdout + done.stderr

    all_as(restricted=True)
    migrate("unsecure")
    all_as(restricted=False)
    options = cluster.zookeeper.options(
        "/kafka", **cluster.zookeeper.login("broker"), **{"zookeeper.set.acl": "true"}
    )

    async def restrict() -> None:
        tree = ZooKeeperCoordination(settings_of(options))
        await tree.start()
        await change_acls(tree)
        await tree.close()

    asyncio.run(restrict())
    all_as(restricted=True)
    migrate("secure")
    all_as(restricted=True)
