"""Clusters on which tools are compared: of one or three brokers, Apache Kafka's or ours.

All are coordinated by one ZooKeeper, each below a node of its own. Their options are alike, and
`empty` brings a cluster back to where it began.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tools.apache_kafka import Distribution
from tools.processes import RunningBroker, free_port

from barnabas.admin.acls import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePatternFilter,
    ResourceType,
    delete_acls,
)
from barnabas.admin.config_entries import ConfigResourceType, Resource
from barnabas.admin.configs import replace_resources
from barnabas.admin.groups import delete_groups, list_groups
from barnabas.admin.quotas import QuotaAlteration, alter_client_quotas, describe_client_quotas
from barnabas.admin.scram import (
    UserScramCredentialDeletion,
    alter_user_scram_credentials,
    describe_user_scram_credentials,
)
from barnabas.admin.topic_descriptions import list_topics
from barnabas.admin.topics import NewTopic, create_topics, delete_topics
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.connection import Connection
from barnabas.model.errors import BarnabasError
from barnabas.model.request_errors import TopicAlreadyExistsError
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = 'username="admin" password="admin-secret" user_admin="admin-secret" user_alice="secret"'
OPTIONS = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS;User:admin",
    "delegation.token.secret.key": "token-secret",
    "sasl.enabled.mechanisms": "PLAIN",
    "security.inter.broker.protocol": "PLAINTEXT",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{LOGIN} {USERS};",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "auto.create.topics.enable": "false",
    "auto.leader.rebalance.enable": "false",
    "log.cleaner.enable": "false",
}
INTERNAL = ("__consumer_offsets", "__transaction_state")
DEADLINE_S = 60


@dataclass
class ToolCluster:
    """A running cluster, and where its parts are."""

    brokers: list[RunningBroker]
    ports: list[int]
    sasl_ports: list[int]
    zookeeper: str
    """Its ZooKeeper, with the node below which it keeps its state."""

    @property
    def bootstrap(self) -> str:
        """The address of its first broker."""
        return f"127.0.0.1:{self.ports[0]}"

    def placed(self, text: str) -> str:
        """Return a documented command line, or a file of it, for this cluster."""
        server = self.zookeeper.partition("/")[0]
        for written, place in (
            ("localhost:2181/kafka", self.zookeeper),
            ("localhost:2181", server),
            ("localhost:9092", self.bootstrap),
            ("localhost:9093", f"127.0.0.1:{self.sasl_ports[0]}"),
            ("/tmp/kafka-logs", str(self.brokers[0].log_dir)),
        ):
            text = text.replace(written, place)
        return text

    def normalised(self, text: str) -> str:
        """Return output as it would be at the documented addresses."""
        text = text.replace(self.zookeeper, "localhost:2181/kafka")
        text = text.replace(self.zookeeper.partition("/")[0], "localhost:2181")
        for port in self.ports:
            text = re.sub(
                rf"(localhost/)?(127\.0\.0\.1|localhost):{port}\b", "localhost:9092", text
            )
        for port in self.sasl_ports:
            text = re.sub(
                rf"(localhost/)?(127\.0\.0\.1|localhost):{port}\b", "localhost:9093", text
            )
        for broker in self.brokers:
            text = text.replace(str(broker.log_dir), "LOG-DIR")
        return text

    def empty(self) -> None:
        """Delete topics, groups, ACLs, quotas, credentials, and options that were changed."""
        asyncio.run(_empty(self.bootstrap))
        self.settle()

    def settle(self) -> None:
        """Wait until all brokers know the same topics, each with a leader."""
        if len(self.brokers) > 1:
            asyncio.run(_settled(self.bootstrap, len(self.brokers)))

    def stop(self) -> None:
        """Stop its brokers."""
        for broker in self.brokers:
            broker.process.kill()
            broker.process.wait()


def start_apache(kafka: Distribution, folder: Path, count: int, zookeeper: str) -> ToolCluster:
    """Start brokers of Apache Kafka 3.9."""

    def start(number: int, port: int, sasl_port: int) -> RunningBroker:
        return kafka.join(
            folder / f"broker-{number}",
            number,
            zookeeper,
            port=port,
            options={**OPTIONS, **_listeners(port, sasl_port)},
            wait=False,
        )

    return _started(start, count, zookeeper)


def start_ours(folder: Path, count: int, zookeeper: str) -> ToolCluster:
    """Start brokers of ours."""

    def start(number: int, port: int, sasl_port: int) -> RunningBroker:
        home = folder / f"broker-{number}"
        home.mkdir(parents=True)
        options = {
            **OPTIONS,
            **_listeners(port, sasl_port),
            "broker.id": str(number),
            "zookeeper.connect": zookeeper,
            "log.dirs": str(home / "logs"),
            "barnabas.diary.enable": "false",  # it has a topic, which would be listed
        }
        file = home / "server.properties"
        file.write_text("".join(f"{name}={text}\n" for name, text in options.items()))
        command = [sys.executable, "-m", "barnabas.cli", "start", "--config", str(file)]
        with (home / "output").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output)
        return RunningBroker("Barnabas", process, f"127.0.0.1:{port}", home / "logs")

    return _started(start, count, zookeeper)


def _listeners(port: int, sasl_port: int) -> dict[str, str]:
    listeners = f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
    return {"listeners": listeners}


def _started(
    start: Callable[[int, int, int], RunningBroker], count: int, zookeeper: str
) -> ToolCluster:
    ports = [free_port() for _ in range(2 * count)]
    plain, sasl = ports[:count], ports[count:]
    brokers = [start(number, plain[number], sasl[number]) for number in range(count)]
    cluster = ToolCluster(brokers, plain, sasl, zookeeper)
    try:
        asyncio.run(_prepared(cluster.bootstrap, count))
    except BaseException:
        cluster.stop()
        raise
    return cluster


async def _prepared(bootstrap: str, count: int) -> None:
    """Wait until all brokers are there, and create the internal topics."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            try:
                async with ClusterClient(bootstrap) as client:
                    await client.refresh()
                    if len(client.cluster.brokers) == count:
                        break
            except BarnabasError:
                pass
            await asyncio.sleep(0.1)
        async with ClusterClient(bootstrap) as client:
            for name in INTERNAL:
                new = NewTopic(name, 3, 1, topic_configs={"cleanup.policy": "compact"})
                [created] = await create_topics(client, [new])
                assert created.error is None, created.error


async def _settled(bootstrap: str, count: int) -> None:
    async with ClusterClient(bootstrap) as client, asyncio.timeout(DEADLINE_S):
        await client.refresh()
        while True:
            views = {await _known(await client.connection(number)) for number in range(count)}
            if len(views) == 1 and all(leader >= 0 for _, _, leader in views.pop()):
                return
            await asyncio.sleep(0.05)


async def _known(connection: Connection) -> frozenset[tuple[str, int, int]]:
    """Return the partitions that a broker knows, and their leaders."""
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    response: MetadataResponse = await connection.send(request)
    return frozenset(
        (topic.name or "", each.partition_index, each.leader_id)
        for topic in response.topics
        for each in topic.partitions
    )


async def _until_free(client: ClusterClient, names: list[str]) -> None:
    """Wait until topics could be created again: they are unlisted before they are gone."""
    while True:
        found = await create_topics(
            client, [NewTopic(name, 1, 1) for name in names], validate_only=True
        )
        if not any(isinstance(each.error, TopicAlreadyExistsError) for each in found):
            return
        await asyncio.sleep(0.05)


async def _empty(bootstrap: str) -> None:
    async with ClusterClient(bootstrap) as client, asyncio.timeout(DEADLINE_S):
        await client.refresh()
        everything = ACLFilter(
            None,
            None,
            ACLOperation.ANY,
            ACLPermissionType.ANY,
            ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
        )
        await delete_acls(client, [everything])
        for group in await list_groups(client):
            await delete_groups(client, [group.name])
        while found := [name for name in await list_topics(client) if name not in INTERNAL]:
            await delete_topics(client, found)
            await _until_free(client, found)
        quotas = await describe_client_quotas(client)
        if quotas:
            gone = [
                QuotaAlteration(quota.entity, dict.fromkeys(quota.values, None)) for quota in quotas
            ]
            await alter_client_quotas(client, gone)
        users = await describe_user_scram_credentials(client)
        secrets = [
            UserScramCredentialDeletion(user, credential.mechanism)
            for user, credentials in users.items()
            for credential in credentials
        ]
        if secrets:
            await alter_user_scram_credentials(client, secrets)
        brokers = [
            Resource(ConfigResourceType.BROKER, name)
            for name in ("", *(str(broker.node_id) for broker in client.cluster.brokers.values()))
        ]
        await replace_resources(client, {resource: {} for resource in brokers})
