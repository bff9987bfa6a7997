"""librdkafka pushes its metrics to our broker, and they agree with what the client did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.compat.conftest import QUICK
from tests.compat.samples import until_deadline
from tools.processes import start_barnabas

from barnabas import KafkaAdminClient
from barnabas.admin.client_telemetry import TelemetryClient
from barnabas.admin.config_entries import AlterConfigOp, Change, ConfigResourceType, Resource
from barnabas.admin.configs import alter_configs

pytestmark = pytest.mark.compat

PREFIX = "org.apache.kafka."
INTERVAL_MS = "200"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker whose clients push everything, five times a second."""
    running = start_barnabas(tmp_path_factory.mktemp("telemetry") / "data", options=QUICK)
    with KafkaAdminClient(bootstrap_servers=running.bootstrap) as admin:
        subscribe(admin, "everything", **{"metrics": "*", "interval.ms": INTERVAL_MS})
    yield running.bootstrap
    running.stop()


@pytest.fixture
def ours(watched: str) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=watched) as admin:
        yield admin


def subscribe(admin: KafkaAdminClient, name: str, **values: str) -> None:
    resource = Resource(ConfigResourceType.CLIENT_METRICS, name)
    changes = [Change(AlterConfigOp.SET, key, value) for key, value in values.items()]
    admin.run(lambda: alter_configs(admin.client, resource, changes))


def known(admin: KafkaAdminClient, client_id: str) -> TelemetryClient | None:
    """What the broker knows of a client."""
    ((_, clients),) = admin.describe_client_telemetry().items()
    found = [each for each in clients if each.client_id == client_id]
    return found[0] if found else None


def values(client: TelemetryClient | None) -> dict[str, float]:
    """The numbers of a client, those of several nodes added up."""
    added: dict[str, float] = {}
    for each in client.metrics if client is not None else ():
        name = each.name.removeprefix(PREFIX)
        added[name] = added.get(name, 0.0) + each.value
    return added


def poll_until(polled: Any, condition: Callable[[], object], what: str) -> None:
    """Serve a client's callbacks until something holds."""
    for _ in until_deadline(what):
        polled.poll(0.05)
        if condition():
            return


def test_a_producers_numbers_agree_with_what_it_did(
    watched: str, ours: KafkaAdminClient, name: str
) -> None:
    client_id = f"producer-of-{name}"
    producer = Producer({"bootstrap.servers": watched, "client.id": client_id})
    latency = "producer.node.request.latency"

    def timed() -> bool:
        producer.produce(name, b"tea")
        found = values(known(ours, client_id))
        return 0 < found.get(f"{latency}.avg", 0) <= found[f"{latency}.max"]

    poll_until(producer, timed, "it tells how long requests took")
    assert producer.flush(30) == 0
    client = known(ours, client_id)
    assert client is not None
    assert client.software_name in ("librdkafka", "confluent-kafka-python")
    assert client.subscribed == ("*",)
    assert client.push_interval_ms == int(INTERVAL_MS)
    assert client.host == "127.0.0.1"
    # Those before the subscription are not counted, and no connection was lost since.
    assert values(client)["producer.connection.creation.total"] == 0
    full = f"{PREFIX}{latency}.avg"
    nodes = {each.attributes["node.id"] for each in client.metrics if each.name == full}
    assert nodes == {str(each) for each in ours.describe_client_telemetry()}
    before = client.pushes
    poll_until(producer, lambda: known(ours, client_id).pushes > before + 1, "it goes on")
    producer.close()
    assert known(ours, client_id).terminating, "it pushes for the last time when it closes"


def test_consumers_numbers_agree_with_what_they_did(
    watched: str, ours: KafkaAdminClient, name: str
) -> None:
    """Two members of a group share three partitions, and both tell of theirs."""
    admin = AdminClient({"bootstrap.servers": watched})
    for future in admin.create_topics([NewTopic(name, 3, 1)]).values():
        future.result(30)
    client_ids = [f"consumer-of-{name}-{number}" for number in range(2)]

    def assigned() -> list[float]:
        found = [values(known(ours, each)) for each in client_ids]
        return sorted(each.get("consumer.coordinator.assigned.partitions", -1) for each in found)

    consumers: list[Consumer] = []
    try:
        for client_id, expected in zip(client_ids, ([-1, 3], [1, 2]), strict=True):
            options = {"bootstrap.servers": watched, "client.id": client_id, "group.id": name}
            consumers.append(Consumer({**options, "fetch.wait.max.ms": 300}))
            consumers[-1].subscribe([name])
            for _ in until_deadline(f"{expected} partitions are assigned"):
                for consumer in consumers:
                    consumer.poll(0.05)
                if assigned() == expected:
                    break
        longest = "consumer.fetch.manager.fetch.latency.max"
        poll_until(
            consumers[0],
            lambda: values(known(ours, client_ids[0])).get(longest, 0) >= 300,
            "a fetch waits for fetch.wait.max.ms where there is nothing to read",
        )
        found = values(known(ours, client_ids[0]))
        assert found["consumer.coordinator.rebalance.latency.total"] > 0
        assert 0 <= found["consumer.poll.idle.ratio.avg"] <= 1
    finally:
        for consumer in consumers:
            consumer.close()


def test_only_what_is_asked_for_is_pushed(ours: KafkaAdminClient, watched: str, name: str) -> None:
    """Another resource is for this client alone, and names one metric."""
    quiet = f"quiet-{name}"
    everything = Resource(ConfigResourceType.CLIENT_METRICS, "everything")
    match = [Change(AlterConfigOp.SET, "match", "client_id=.*-of-.*")]
    ours.run(lambda: alter_configs(ours.client, everything, match))
    subscribe(
        ours,
        "one",
        **{
            "metrics": f"{PREFIX}producer.connection.creation.total",
            "interval.ms": INTERVAL_MS,
            "match": f"client_id={quiet}",
        },
    )
    producer = Producer({"bootstrap.servers": watched, "client.id": quiet})
    poll_until(producer, lambda: values(known(ours, quiet)), "it pushes")
    assert set(values(known(ours, quiet))) == {"producer.connection.creation.total"}
