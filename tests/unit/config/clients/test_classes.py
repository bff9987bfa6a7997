"""Options whose values are classes, given as classes, objects or names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas import KafkaConsumer, KafkaProducer, serialization
from barnabas.aio import AIOKafkaConsumer, AIOKafkaProducer
from barnabas.config.clients.classes import ROLES
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import ProducerOptions
from barnabas.config.clients.security import SecurityOptions
from barnabas.errors import ConfigError

HERE = __name__
KAFKAS = "org.apache.kafka.common.serialization"


class Upper:
    """A serializer and deserializer that wants to know its options."""

    def __init__(self) -> None:
        self.told: Any = None

    def configure(self, configs: Any, is_key: bool) -> None:
        self.told = (dict(configs), is_key)

    def serialize(self, topic: str, headers: Any, data: Any) -> Any:
        return data.upper()

    def deserialize(self, topic: str, headers: Any, data: Any) -> Any:
        return data.upper()

    class Inner:
        """A class inside a class."""

        def on_send(self, record: Any) -> Any:
            return record

        def on_consume(self, records: Any) -> Any:
            return records


class Watch:
    """An interceptor of both sides."""

    def on_send(self, record: Any) -> Any:
        return record

    def on_consume(self, records: Any) -> Any:
        return records


class Anywhere:
    """An assignor."""

    name = "anywhere"
    is_cooperative = False

    def user_data(self, owned: Any, generation: int) -> None:
        return None

    def assign(self, partition_counts: Any, members: Any) -> Any:
        return {}


class Tokens:
    def token(self) -> str:
        return "token"


def shout(data: str) -> bytes:
    return data.upper().encode()


def choose(key: Any, everything: Any, available: Any) -> int:
    return 0


def producer(**given: Any) -> ProducerOptions:
    return parse_client_options(ProducerOptions, given)


def consumer(**given: Any) -> ConsumerOptions:
    return parse_client_options(ConsumerOptions, given)


@pytest.mark.parametrize("kind", sorted(ROLES["serializer"].paths))
def test_kafkas_serializers_are_ours(kind: str) -> None:
    made = producer(**{"key.serializer": kind, "value.serializer": kind})
    expected = getattr(serialization, kind.rpartition(".")[2])
    assert type(made.key_serializer) is expected
    assert type(made.value_serializer) is expected


@pytest.mark.parametrize("kind", sorted(ROLES["deserializer"].paths))
def test_kafkas_deserializers_are_ours(kind: str) -> None:
    made = consumer(**{"key.deserializer": kind, "value.deserializer": f" {kind} "})
    expected = getattr(serialization, kind.rpartition(".")[2])
    assert type(made.key_deserializer) is expected
    assert type(made.value_deserializer) is expected


def test_a_class_is_made_and_told_the_options() -> None:
    """By name or as it is; an object is used as it is, and told nothing."""
    for given in (f"{HERE}.Upper", f"{HERE}:Upper", Upper):
        made = producer(**{"value.serializer": given, "linger.ms": "5"})
        assert type(made.value_serializer).__name__ == "Upper"
        configs, is_key = made.value_serializer.told
        assert (configs["linger.ms"], is_key) == ("5.0", False)
        assert consumer(key_deserializer=given).key_deserializer.told[1] is True
    mine = Upper()
    assert producer(value_serializer=mine).value_serializer is mine
    assert mine.told is None


def test_functions_and_types_are_called() -> None:
    assert producer(value_serializer=f"{HERE}.shout").value_serializer("a") == b"A"
    assert consumer(value_deserializer="json.loads").value_deserializer("[1]") == [1]
    assert consumer(value_deserializer=int).value_deserializer is int
    assert producer(value_serializer=str.encode).value_serializer("a") == b"a"


def test_encodings_and_inner_serializers_are_options() -> None:
    made = producer(
        **{
            "key.serializer": f"{KAFKAS}.StringSerializer",
            "key.serializer.encoding": "UTF-16BE",
            "value.serializer": f"{KAFKAS}.ListSerializer",
            "list.value.serializer.inner": f"{KAFKAS}.StringSerializer",
            "serializer.encoding": "ISO-8859-1",
        }
    )
    assert made.key_serializer.serialize("t", None, "a") == b"\0a"
    assert made.value_serializer.serialize("t", None, ["é"]) == b"\1\0\0\0\1\0\0\0\1\xe9"
    read = consumer(
        value_deserializer=f"{KAFKAS}.ListDeserializer",
        list_value_deserializer_inner=f"{KAFKAS}.UUIDDeserializer",
        value_deserializer_encoding="UTF-8",
    )
    assert type(read.value_deserializer.inner) is serialization.UUIDDeserializer


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (f"{HERE}.Watch", ["Watch"]),
        (f"{HERE}.Watch, {HERE}.Upper.Inner", ["Watch", "Inner"]),
        ([f"{HERE}.Watch", Watch], ["Watch", "Watch"]),
        (Watch, ["Watch"]),
        ("", []),
        ((), []),
    ],
)
def test_interceptors_are_one_or_several(given: Any, names: list[str]) -> None:
    for found in (
        producer(interceptor_classes=given).interceptors,
        consumer(interceptor_classes=given).interceptor_classes,
    ):
        assert [each.__name__ for each in found] == names


def test_assignors_partitioners_and_callbacks_by_name() -> None:
    strategies = "org.apache.kafka.clients.consumer.StickyAssignor, range"
    made = consumer(partition_assignment_strategy=f"{strategies}, {HERE}.Anywhere")
    kafkas, ours, custom = made.partition_assignment_strategy
    assert (kafkas, ours) == tuple(strategies.split(", "))
    assert custom is Anywhere
    assert producer(partitioner=f"{HERE}.choose").partitioner is choose
    name = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
    assert producer(**{"partitioner.class": name}).partitioner == name
    callback = consumer(default_offset_commit_callback=f"{HERE}.shout")
    assert callback.default_offset_commit_callback is shout
    secured = parse_client_options(
        SecurityOptions,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauth.token.provider": f"{HERE}.Tokens",
        },
    )
    assert secured.sasl_oauth_token_provider.token() == "token"


KAFKA_NAME = f"{KAFKAS}.StringSerializer"

MISTAKES: list[tuple[Any, dict[str, Any], str]] = [
    (KafkaProducer, {"value.serializer": f"{KAFKAS}.StringSerialiser"}, f"mean {KAFKA_NAME}\\?"),
    (KafkaProducer, {"key_serializer": "StringSerializer"}, f"mean {KAFKA_NAME}\\?"),
    (AIOKafkaProducer, {"value_serializer": "com.acme.Orders"}, "no Python module 'com'"),
    (AIOKafkaProducer, {"value_serializer": f"{HERE}.shoot"}, f"mean {HERE}.shout\\?"),
    (KafkaProducer, {"value_serializer": 5}, "value.serializer=5: invalid serializer"),
    (
        KafkaProducer,
        {"value_serializer": "math.pi"},
        "value.serializer=math.pi: invalid serializer",
    ),
    (KafkaProducer, {"value_serializer": "not a name"}, "no such serializer"),
    (
        KafkaProducer,
        {"value_serializer": "barnabas.serialization.AvroSerializer"},
        "cannot be created without arguments",
    ),
    (
        KafkaProducer,
        {"value_serializer": KAFKA_NAME, "serializer_encoding": "utf-77"},
        "serializer.encoding=utf-77: no such encoding",
    ),
    (
        KafkaProducer,
        {"partitioner_class": "org.apache.kafka.clients.producer.RoundRobin"},
        r"mean org.apache.kafka.clients.producer.RoundRobinPartitioner\?",
    ),
    (KafkaProducer, {"interceptor_classes": "my.mod.Cls"}, "no Python module 'my'"),
    (KafkaConsumer, {"interceptor_classes": "my.mod.Cls"}, "no Python module 'my'"),
    (
        KafkaConsumer,
        {"interceptor_classes": [shout]},
        "invalid interceptor: must be an object with",
    ),
    (AIOKafkaConsumer, {"value_deserializer": f"{KAFKAS}.LongSerializer"}, "LongDeserializer"),
    (
        AIOKafkaConsumer,
        {"partition_assignment_strategy": "org.apache.kafka.clients.consumer.RangAssignor"},
        r"mean org.apache.kafka.clients.consumer.RangeAssignor\?",
    ),
    (KafkaConsumer, {"partition_assignment_strategy": "roundrobbin"}, r"mean roundrobin\?"),
    (KafkaConsumer, {"partition_assignment_strategy": "com.acme.RangeAssignor"}, "'com'"),
]


@pytest.mark.parametrize(("client", "options", "reason"), MISTAKES)
def test_mistakes_are_refused_when_the_client_is_made(
    client: Any, options: dict[str, Any], reason: str
) -> None:
    """Before anything is connected: no broker is there."""
    with pytest.raises(ConfigError, match=reason):
        client(bootstrap_servers="127.0.0.1:1", **options)


def test_a_module_that_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own mistake is shown, and not taken for a name that is not there."""
    (tmp_path / "lame_module.py").write_text("import no_such_thing_at_all\n")
    (tmp_path / "sick_module.py").write_text("raise RuntimeError('sick')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ConfigError, match="importing it failed: No module named 'no_such_thing"):
        producer(value_serializer="lame_module.Thing")
    with pytest.raises(ConfigError, match=r"importing it failed: RuntimeError\('sick'\)"):
        producer(value_serializer="sick_module.Thing")
    assert "lame_module" not in sys.modules
