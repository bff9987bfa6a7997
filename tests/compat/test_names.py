"""Every public name of kafka-python's and aiokafka's clients is here, but for those listed.

`docs/how-to/move-to-barnabas.md` tells users of the ones that are not.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from typing import Any

import pytest

import barnabas
import barnabas.admin
import barnabas.aio
import barnabas.errors

pytestmark = pytest.mark.compat

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "(read|open)_text is deprecated", DeprecationWarning)
    kafka = importlib.import_module("kafka")
    kafka_errors = importlib.import_module("kafka.errors")
aiokafka = importlib.import_module("aiokafka")
aiokafka_admin = importlib.import_module("aiokafka.admin")
aiokafka_errors = importlib.import_module("aiokafka.errors")

DEFAULTS = {"DEFAULT_CONFIG", "DEPRECATED_CONFIGS", "DEFAULT_SESSION_TIMEOUT_MS_PRE_KIP_735"}


def names(thing: Any) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("theirs", "ours", "missing"),
    [
        (kafka.KafkaProducer, barnabas.KafkaProducer, {"max_usable_produce_magic"}),
        (kafka.KafkaConsumer, barnabas.KafkaConsumer, {"bootstrap"}),
        (kafka.KafkaAdminClient, barnabas.KafkaAdminClient, set()),
        (aiokafka.AIOKafkaProducer, barnabas.aio.AIOKafkaProducer, set()),
        (aiokafka.AIOKafkaConsumer, barnabas.aio.AIOKafkaConsumer, set()),
        (aiokafka_admin.AIOKafkaAdminClient, barnabas.aio.AIOKafkaAdminClient, set()),
    ],
    ids=lambda value: f"{value.__module__}.{value.__name__}" if isinstance(value, type) else "",
)
def test_methods(theirs: type, ours: type, missing: set[str]) -> None:
    assert names(theirs) - names(ours) - DEFAULTS == missing


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (kafka.KafkaProducer, barnabas.KafkaProducer),
        (kafka.KafkaConsumer, barnabas.KafkaConsumer),
        (aiokafka.AIOKafkaProducer, barnabas.aio.AIOKafkaProducer),
        (aiokafka.AIOKafkaConsumer, barnabas.aio.AIOKafkaConsumer),
    ],
    ids=["producer", "consumer", "aio producer", "aio consumer"],
)
def test_arguments_in_the_same_order(theirs: type, ours: type) -> None:
    for name in names(theirs) & names(ours):
        method = getattr(theirs, name)
        if not callable(method):
            continue
        wanted = list(inspect.signature(method).parameters)
        if wanted == ["self", "timeout", "null_logger"]:
            wanted.pop()  # kafka-python closes itself with it when it is deleted
        found = list(inspect.signature(getattr(ours, name)).parameters)
        assert found[: len(wanted)] == wanted, name


@pytest.mark.parametrize("theirs", [kafka_errors, aiokafka_errors], ids=["kafka", "aiokafka"])
def test_errors(theirs: Any) -> None:
    wanted = {
        name
        for name, value in vars(theirs).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert {name for name in wanted if not hasattr(barnabas.errors, name)} == set()


def test_packages() -> None:
    assert set(kafka.__all__) - set(barnabas.__all__) == set()
    assert set(aiokafka.__all__) - set(barnabas.aio.__all__) == {"AIOKafkaClient"}
    admin = importlib.import_module("kafka.admin")
    assert {name for name in admin.__all__ if not hasattr(barnabas.admin, name)} == set()
