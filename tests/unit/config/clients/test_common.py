"""The options that all clients share, held against those of kafka-python and aiokafka."""

from __future__ import annotations

import inspect
import warnings

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient

from barnabas.config.clients.common import CommonOptions
from barnabas.config.option import Option

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of the way that kafka reads its files
    import kafka

SHARED = (
    set(kafka.KafkaProducer.DEFAULT_CONFIG)
    & set(kafka.KafkaConsumer.DEFAULT_CONFIG)
    & set(kafka.KafkaAdminClient.DEFAULT_CONFIG)
)


@pytest.mark.parametrize("name", sorted(SHARED))
def test_what_all_clients_of_kafka_python_take_is_declared(name: str) -> None:
    others = {other.replace(".", "_") for other in CommonOptions.other_names}
    attributes = {declared.attribute for declared in CommonOptions.options.values()}
    assert name in attributes | others


def test_what_all_clients_of_aiokafka_take_is_declared() -> None:
    signatures = [
        set(inspect.signature(client.__init__).parameters)
        for client in (aiokafka.AIOKafkaProducer, aiokafka.AIOKafkaConsumer, AIOKafkaAdminClient)
    ]
    shared = set.intersection(*signatures) - {"self", "loop"}
    assert shared <= {declared.attribute for declared in CommonOptions.options.values()}


@pytest.mark.parametrize("declared", CommonOptions.options.values(), ids=lambda o: o.name)
def test_every_default_is_valid_and_every_doc_a_sentence(declared: Option) -> None:
    if declared.default is not None:
        assert declared.parse(declared.default) == declared.default
    assert declared.doc[0].isupper() or declared.doc.startswith("SO_")
    assert declared.doc.endswith((".", ";"))
