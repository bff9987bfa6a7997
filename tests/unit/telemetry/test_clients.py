"""Who pushes what and when: Kafka's rules, and the limits of what is kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from barnabas.config.client_metrics import parse_client_metrics
from barnabas.kernels import crc32c
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import METADATA_UUID, ZERO_UUID, Uuid
from barnabas.telemetry import clients
from barnabas.telemetry.clients import Client, ClientInstances, Instance, subscription_id
from barnabas.telemetry.otlp import Point, PointKind

WEB = Client("web", "librdkafka", "2.11.0", "10.0.0.7", 4711)
WALL_MS = 1_700_000_000_000


def new_instances() -> ClientInstances:
    numbers = count(1)
    return ClientInstances(lambda size: next(numbers).to_bytes(size, "big"))


@pytest.fixture
def instances() -> ClientInstances:
    made = new_instances()
    subscribe_to(made, "watch", metrics="org.apache.", **{"interval.ms": "1000"})
    return made


def subscribe_to(instances: ClientInstances, name: str, **values: str) -> None:
    instances.set_subscription(name, parse_client_metrics(name, values))


def get(instances: ClientInstances, now_ms: int, instance_id: Uuid = ZERO_UUID) -> Instance:
    return instances.subscribe(instance_id, WEB, now_ms, WALL_MS)


def push(
    instances: ClientInstances,
    instance: Instance,
    now_ms: int,
    *,
    terminating: bool = False,
    codec: int = 0,
    size: int = 10,
    subscription: int | None = None,
) -> Instance:
    wanted = instance.subscription_id if subscription is None else subscription
    return instances.check_push(
        instance.instance_id,
        wanted,
        WEB,
        now_ms,
        WALL_MS,
        terminating=terminating,
        codec=codec,
        size=size,
        size_max=100,
    )


def refusal(*arguments: object, **more: object) -> ErrorCode:
    with pytest.raises(RequestError) as refused:
        push(*arguments, **more)
    return refused.value.code


def point(name: str, value: float, kind: PointKind = PointKind.GAUGE) -> Point:
    return Point(name, "ms", kind, (("node", "1"),), value)


def test_without_a_subscription_nothing_is_asked_for() -> None:
    instance = get(new_instances(), 0)
    assert instance.instance_id not in (ZERO_UUID, METADATA_UUID)
    assert (instance.metrics, instance.interval_ms) == ((), 300_000)


def test_the_subscriptions_that_match_are_joined(instances: ClientInstances) -> None:
    subscribe_to(instances, "b", metrics="b.,a.", match="client_id=we.,client_source_port=4711")
    subscribe_to(instances, "other", metrics="*", match="client_software_name=java")
    subscribe_to(instances, "part", metrics="p.", match="client_id=we")
    instance = get(instances, 0)
    assert instance.metrics == ("a.", "b.", "org.apache.")
    assert instance.interval_ms == 1000
    subscribe_to(instances, "all", metrics="*", **{"interval.ms": "500"})
    instance = get(instances, 1, instance.instance_id)
    assert (instance.metrics, instance.interval_ms) == (("*",), 500)
    instances.set_subscription("all", None)
    instances.set_subscription("never was", None)
    assert get(instances, 2, instance.instance_id).interval_ms == 1000


def test_the_id_of_a_subscription_is_kafkas() -> None:
    """CRC-32C of the set as Java writes it and the interval, and the hash of the client's id."""
    crc = crc32c(b"[*]30000")
    assert subscription_id(("*",), 30_000, ZERO_UUID) == _signed(crc)
    assert subscription_id(("*",), 30_000, bytes(15) + b"\x05") == _signed(crc ^ 5)
    high = b"\x01\x00\x00\x00\x00\x00\x00\x02" + bytes(8)
    assert subscription_id(("*",), 30_000, high) == _signed(crc ^ 0x01000000 ^ 2)
    assert subscription_id(("a", "b"), 100, ZERO_UUID) == _signed(crc32c(b"[a, b]100"))
    ids = {
        subscription_id(metrics, interval, bytes([*bytes(15), each]))
        for metrics in (("*",), ("a", "b"))
        for interval in (100, 200)
        for each in (1, 2)
    }
    assert len(ids) == 8
    assert all(-(1 << 31) <= each < 1 << 31 for each in ids)


def _signed(number: int) -> int:
    return number - (1 << 32) if number >> 31 else number


def test_a_client_that_asks_too_often_is_throttled(instances: ClientInstances) -> None:
    instance = get(instances, 0)
    for now_ms in (0, 999):
        with pytest.raises(RequestError) as refused:
            get(instances, now_ms, instance.instance_id)
        assert refused.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert get(instances, 1000, instance.instance_id) is instance


def test_after_an_error_that_it_cures_a_client_may_ask_at_once(instances: ClientInstances) -> None:
    instance = get(instances, 0)
    assert refusal(instances, instance, 10, subscription=1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert get(instances, 20, instance.instance_id) is instance
    assert refusal(instances, instance, 1500, codec=9) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert get(instances, 1510, instance.instance_id) is instance
    with pytest.raises(RequestError):
        get(instances, 1520, instance.instance_id)


def test_the_first_push_may_come_at_any_time_and_the_next_after_the_interval(
    instances: ClientInstances,
) -> None:
    instance = get(instances, 0)
    assert push(instances, instance, 500) is instance
    assert refusal(instances, instance, 1499) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(instances, instance, 1500) is instance
    with pytest.raises(RequestError):
        get(instances, 2499, instance.instance_id)


def test_the_last_push_may_come_early_and_ends_it(instances: ClientInstances) -> None:
    instance = get(instances, 0)
    push(instances, instance, 500)
    push(instances, instance, 510, terminating=True)
    assert refusal(instances, instance, 5000) == ErrorCode.INVALID_REQUEST
    assert push(instances, instance, 6000).terminating is False, "as Kafka: it counts per request"


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"subscription": 0}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"codec": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"codec": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"size": 101}, ErrorCode.TELEMETRY_TOO_LARGE),
    ],
)
def test_what_is_not_accepted(instances: ClientInstances, more: dict, code: ErrorCode) -> None:
    instance = get(instances, 0)
    assert refusal(instances, instance, 10, **more) == code


@pytest.mark.parametrize("codec", range(5))
def test_every_compression_is_accepted(instances: ClientInstances, codec: int) -> None:
    assert push(instances, get(instances, 0), 10, codec=codec, size=100)


@pytest.mark.parametrize("reserved", [ZERO_UUID, METADATA_UUID])
def test_reserved_ids_cannot_push(instances: ClientInstances, reserved: Uuid) -> None:
    instance = Instance(reserved, WEB, (), 1000, 0)
    assert refusal(instances, instance, 0) == ErrorCode.INVALID_REQUEST


def test_a_client_of_another_broker_can_push_at_once(instances: ClientInstances) -> None:
    elsewhere = new_instances()
    subscribe_to(elsewhere, "watch", metrics="org.apache.", **{"interval.ms": "1000"})
    instance = get(elsewhere, 0)
    known = push(instances, instance, 10)
    assert known.subscription_id == instance.subscription_id


def test_a_change_makes_clients_ask_again_and_keeps_their_numbers(
    instances: ClientInstances,
) -> None:
    instance = get(instances, 0)
    push(instances, instance, 10)
    instances.record(instance, [point("a", 1.0)], WALL_MS)
    subscribe_to(instances, "watch", metrics="more", **{"interval.ms": "1000"})
    assert refusal(instances, instance, 20) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    renewed = get(instances, 30, instance.instance_id)
    assert renewed is not instance
    assert [each.name for each in renewed.series.values()] == ["a"]
    assert (renewed.pushes, renewed.push_time_ms) == (1, WALL_MS)


def test_differences_are_added_up(instances: ClientInstances) -> None:
    instance = get(instances, 0)
    for value in (2.0, 3.0):
        instances.record(
            instance,
            [
                point("delta", value, PointKind.DELTA),
                point("sum", value, PointKind.SUM),
                point("gauge", value),
            ],
            WALL_MS,
        )
    found = {each.name: each.value for each in instance.series.values()}
    assert found == {"delta": 5.0, "sum": 3.0, "gauge": 3.0}
    assert instance.pushes == 2


def test_the_number_of_series_is_limited(
    instances: ClientInstances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "SERIES_MAX", 3)
    monkeypatch.setattr(clients, "ALL_SERIES_MAX", 4)
    first, second = get(instances, 0), get(instances, 0)
    instances.record(first, [point(f"m{n}", n) for n in range(5)], WALL_MS)
    instances.record(second, [point(f"m{n}", n) for n in range(5)], WALL_MS)
    assert [len(first.series), first.dropped] == [3, 2]
    assert [len(second.series), second.dropped] == [1, 4]
    assert instances.count(first.expires_ms) == 0
    third = get(instances, first.expires_ms)
    instances.record(third, [point(f"m{n}", n) for n in range(3)], WALL_MS)
    assert len(third.series) == 3, "those of clients that are gone do not count"


def test_clients_that_were_not_heard_are_forgotten(instances: ClientInstances) -> None:
    subscribe_to(instances, "slow", metrics="x", match="client_id=slow", **{"interval.ms": "1000"})
    instance = get(instances, 0)
    assert [each.instance_id for each in instances.live(59_999)] == [instance.instance_id]
    assert list(instances.live(60_000)) == []
    plain = new_instances()
    get(plain, 0)
    assert plain.count(599_999) == 1, "twice its interval, if that is more"
    assert plain.count(600_000) == 0


def test_the_number_of_clients_is_limited(
    instances: ClientInstances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "INSTANCES_MAX", 2)
    first, second = get(instances, 0), get(instances, 1)
    push(instances, first, 2)
    third = get(instances, 3)
    assert [each.instance_id for each in instances.live(4)] == [
        first.instance_id,
        third.instance_id,
    ]
    instances.record(second, [point("a", 1.0)], WALL_MS)
    assert second.series == {}, "it was dropped while its push was decoded"


def test_many_clients_get_ids_of_their_own(instances: ClientInstances) -> None:
    def repeating() -> Iterator[bytes]:
        for number in (7, 7, 8):
            yield bytes([number]) * 16

    made = repeating()
    own = ClientInstances(lambda _: next(made))
    assert get(own, 0).instance_id != get(own, 0).instance_id
