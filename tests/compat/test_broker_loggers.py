"""Levels of a broker's loggers, set by kafka-python's admin client and by ours."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

pytestmark = pytest.mark.compat


@pytest.fixture(params=["kafka", "barnabas"])
def library(request: pytest.FixtureRequest) -> Iterator[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield importlib.import_module(f"{request.param}.admin")


def test_levels_are_set_and_reset(library: Any, bootstrap: str) -> None:
    resource = library.ConfigResource
    with closing(library.KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        broker = str(admin.describe_cluster()["brokers"][0]["broker_id"])

        def level(name: str) -> dict[str, Any]:
            asked = [resource("broker_logger", broker)]
            found = admin.describe_configs(asked, config_filter="all")["broker_logger"][broker]
            entry: dict[str, Any] = found[name]
            return entry

        before = level("kafka.coordinator.transaction")["value"]
        assert level("root")["config_source"] == "DYNAMIC_BROKER_LOGGER_CONFIG"
        changed = {"kafka.coordinator.transaction": "TRACE"}
        answer = admin.alter_configs([resource("broker_logger", broker, changed)])
        assert answer == {"broker_logger": {broker: "OK"}}
        assert level("barnabas.transactions")["value"] == "TRACE"
        names = ["kafka.coordinator.transaction"]
        admin.reset_configs([resource("broker_logger", broker, names)])
        assert level("barnabas.transactions")["value"] == before
        for wrong in ({"kafka.coordinator.transaction": "LOUD"}, {"no.such.logger": "INFO"}):
            refused = admin.alter_configs(
                [resource("broker_logger", broker, wrong)], raise_on_unknown=False
            )
            assert "InvalidConfigurationError" in refused["broker_logger"][broker]
