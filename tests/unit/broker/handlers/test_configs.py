"""Configs of topics and brokers: described with their sources, changed, refused, acting."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.broker.serving import Serving, Wire, batch_of, create_topic, produce

from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages import alter_configs as replace_wire
from barnabas.wire.messages import incremental_alter_configs as change_wire
from barnabas.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.wire.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT, LOGGER = 1, 2, 3, 4, 5, 6


def describe(wire: Wire, kind: int, name: str, version: int = 4, **more: Any) -> Any:
    """Describe one resource."""
    keys = more.pop("keys", None)
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    request = DescribeConfigsRequest(resources=[resource], **more)
    (result,) = wire.ask(request, version).results
    return result


def value_of(wire: Wire, kind: int, name: str, option: str) -> tuple[str | None, int]:
    """Return one option's value and source."""
    (config,) = describe(wire, kind, name, keys=[option]).configs
    return config.value, config.config_source


def change(
    wire: Wire, kind: int, name: str, *changes: tuple[str, int, str | None], dry_run: bool = False
) -> Any:
    """Change single values of one resource; return its result."""
    resource = change_wire.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            change_wire.AlterableConfig(name=n, config_operation=o, value=v) for n, o, v in changes
        ],
    )
    request = change_wire.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=dry_run
    )
    (result,) = wire.ask(request, 1).responses
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def replace(wire: Wire, kind: int, name: str, values: Mapping[str, str | None]) -> Any:
    """Replace all values of one resource; return its result."""
    resource = replace_wire.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[replace_wire.AlterableConfig(name=n, value=v) for n, v in values.items()],
    )
    (result,) = wire.ask(replace_wire.AlterConfigsRequest(resources=[resource]), 2).responses
    return result


def test_topic_configs(wire: Wire, new_name: Callable[[], str]) -> None:
    """All options of a topic, each with its value and where that comes from."""
    create_topic(wire, name := new_name(), configs={"retention.ms": "5000"})
    everything = {each.name: each for each in describe(wire, TOPIC, name).configs}
    assert len(everything) > 25
    assert everything["retention.ms"].value == "5000"
    assert everything["retention.ms"].config_source == DYNAMIC_TOPIC
    assert everything["cleanup.policy"].value == "delete"
    assert everything["cleanup.policy"].config_source == DEFAULT
    only = describe(wire, TOPIC, name, keys=["retention.ms", "no.such"]).configs
    assert [each.name for each in only] == ["retention.ms"]
    assert describe(wire, TOPIC, name, keys=[]).configs == []


def test_versions_of_describe(wire: Wire, new_name: Callable[[], str]) -> None:
    """v0 knows defaults, v1 synonyms, v3 types and documentation."""
    create_topic(wire, name := new_name(), configs={"retention.ms": "5000"})
    keys = ["retention.ms", "segment.ms"]
    oldest = {each.name: each for each in describe(wire, TOPIC, name, 0, keys=keys).configs}
    assert (oldest["retention.ms"].is_default, oldest["segment.ms"].is_default) == (False, True)
    (named, _) = describe(wire, TOPIC, name, 1, keys=keys, include_synonyms=True).configs
    assert (named.synonyms[0].name, named.synonyms[0].value) == ("retention.ms", "5000")
    (plain, _) = describe(wire, TOPIC, name, 1, keys=keys).configs
    assert plain.synonyms == []
    (full, _) = describe(wire, TOPIC, name, 3, keys=keys, include_documentation=True).configs
    assert (full.config_type, bool(full.documentation)) == (5, True)
    (bare, _) = describe(wire, TOPIC, name, 3, keys=keys).configs
    assert bare.documentation is None


def test_changes_of_topics_act(wire: Wire, topic: str) -> None:
    """A changed limit holds for the next append; taking it back, too."""
    assert change(wire, TOPIC, topic, ("max.message.bytes", SET, "100")).error_code == 0
    assert produce(wire, topic, batch_of([bytes(200)])).error_code == 10
    assert value_of(wire, TOPIC, topic, "max.message.bytes") == ("100", DYNAMIC_TOPIC)
    assert change(wire, TOPIC, topic, ("max.message.bytes", DELETE, None)).error_code == 0
    assert produce(wire, topic, batch_of([bytes(200)])).error_code == 0
    assert value_of(wire, TOPIC, topic, "max.message.bytes") == ("1048588", DEFAULT)


def test_lists_are_appended_to(wire: Wire, topic: str) -> None:
    """append and subtract work on lists, and only there."""
    assert change(wire, TOPIC, topic, ("cleanup.policy", APPEND, "compact")).error_code == 0
    assert value_of(wire, TOPIC, topic, "cleanup.policy")[0] == "delete,compact"
    assert change(wire, TOPIC, topic, ("cleanup.policy", SUBTRACT, "delete")).error_code == 0
    assert value_of(wire, TOPIC, topic, "cleanup.policy")[0] == "compact"
    refused = change(wire, TOPIC, topic, ("retention.ms", APPEND, "1"))
    assert refused.error_code == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([("no.such", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, "soon")], ErrorCode.INVALID_CONFIG),
        ([("segment.bytes", SET, "1")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        (
            [("flush.ms", SET, "7"), ("retention.ms", SET, "soon")],
            ErrorCode.INVALID_CONFIG,
        ),
    ],
)
def test_bad_changes(
    wire: Wire, topic: str, changes: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    """Nothing of a bad request acts, and the reason is told."""
    before = describe(wire, TOPIC, topic).configs
    result = change(wire, TOPIC, topic, *changes)
    assert result.error_code == code
    assert result.error_message
    assert describe(wire, TOPIC, topic).configs == before


def test_dry_runs(wire: Wire, topic: str) -> None:
    """validate_only finds mistakes and changes nothing."""
    assert change(wire, TOPIC, topic, ("retention.ms", SET, "7"), dry_run=True).error_code == 0
    assert value_of(wire, TOPIC, topic, "retention.ms")[1] == DEFAULT
    bad = change(wire, TOPIC, topic, ("retention.ms", SET, "soon"), dry_run=True)
    assert bad.error_code == ErrorCode.INVALID_CONFIG


def test_replacing(wire: Wire, topic: str) -> None:
    """AlterConfigs takes back what it does not name."""
    assert replace(wire, TOPIC, topic, {"flush.ms": "7", "retention.ms": "8"}).error_code == 0
    assert replace(wire, TOPIC, topic, {"retention.ms": "9"}).error_code == 0
    assert value_of(wire, TOPIC, topic, "flush.ms")[1] == DEFAULT
    assert value_of(wire, TOPIC, topic, "retention.ms") == ("9", DYNAMIC_TOPIC)
    assert replace(wire, TOPIC, topic, {"retention.ms": None}).error_code == 42
    assert replace(wire, TOPIC, topic, {"no.such": "1"}).error_code == ErrorCode.INVALID_CONFIG
    assert replace(wire, TOPIC, "nowhere", {}).error_code == 3


def test_unknown_resources(wire: Wire, topic: str) -> None:
    """No such topic, no such broker, no such type."""
    assert describe(wire, TOPIC, "nowhere").error_code == 3
    assert change(wire, TOPIC, "nowhere", ("retention.ms", SET, "1")).error_code == 3
    assert describe(wire, BROKER, "99").error_code == ErrorCode.INVALID_REQUEST
    assert describe(wire, BROKER, "zero").error_code == ErrorCode.INVALID_REQUEST
    assert describe(wire, 77, "x").error_code == ErrorCode.INVALID_REQUEST
    assert change(wire, 77, "x", ("a", SET, "1")).error_code == ErrorCode.INVALID_REQUEST
    for kind in (CLIENT_METRICS, GROUP):
        assert describe(wire, kind, "0").configs == []


def test_levels_of_loggers(wire: Wire) -> None:
    """They are shown and set by IncrementalAlterConfigs, and by no other source."""
    name = "kafka.request.logger"
    own = logging.getLogger("barnabas.request")
    before = own.level
    try:
        assert change(wire, BROKER_LOGGER, "0", (name, SET, "ERROR"), dry_run=True).error_code == 0
        assert own.level == before
        assert change(wire, BROKER_LOGGER, "0", (name, SET, "ERROR")).error_code == 0
        assert own.level == logging.ERROR
        result = describe(wire, BROKER_LOGGER, "0", keys=[name], include_synonyms=True)
        (config,) = result.configs
        assert (config.name, config.value, config.config_source) == (name, "ERROR", LOGGER)
        assert (config.read_only, config.is_sensitive, config.config_type) == (False, False, 0)
        assert config.synonyms == []
        assert change(wire, BROKER_LOGGER, "0", (name, DELETE, None)).error_code == 0
        assert own.level == logging.NOTSET
    finally:
        own.setLevel(before)
    assert len(describe(wire, BROKER_LOGGER, "0").configs) > 20
    for broker in ("", "99", "zero"):
        assert describe(wire, BROKER_LOGGER, broker).error_code == ErrorCode.INVALID_REQUEST
        refused = change(wire, BROKER_LOGGER, broker, (name, SET, "INFO"))
        assert refused.error_code == ErrorCode.INVALID_REQUEST
    unknown = change(wire, BROKER_LOGGER, "0", ("no.such", SET, "INFO"))
    assert unknown.error_code == ErrorCode.INVALID_CONFIG
    assert unknown.error_message == "Logger no.such does not exist!"
    assert change(wire, BROKER_LOGGER, "0", (name, SET, None)).error_code == 42
    replaced = replace(wire, BROKER_LOGGER, "0", {name: "INFO"})
    assert replaced.error_code == ErrorCode.INVALID_REQUEST


def test_resources_named_twice(wire: Wire, topic: str) -> None:
    """The second mention is a mistake."""
    resource = change_wire.AlterConfigsResource(resource_type=TOPIC, resource_name=topic)
    request = change_wire.IncrementalAlterConfigsRequest(resources=[resource, resource])
    assert [each.error_code for each in wire.ask(request, 1).responses] == [0, 42]


def test_broker_configs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Static, cluster-wide and own values of a broker: the nearest acts and is told."""
    options = {"num.partitions": 3, "log.retention.ms": 1_000_000}
    directory = tmp_path_factory.mktemp("broker-configs")
    with Serving(directory, options) as serving, serving.connect() as wire:
        assert value_of(wire, BROKER, "0", "num.partitions") == ("3", STATIC)
        assert value_of(wire, BROKER, "0", "log.segment.bytes") == ("1073741824", DEFAULT)

        def set_to(name: str, option: str, text: str | None) -> int:
            operation = DELETE if text is None else SET
            code: int = change(wire, BROKER, name, (option, operation, text)).error_code
            return code

        assert set_to("", "message.max.bytes", "500") == 0
        assert value_of(wire, BROKER, "0", "message.max.bytes") == ("500", DYNAMIC_DEFAULT)
        assert value_of(wire, BROKER, "", "message.max.bytes") == ("500", DYNAMIC_DEFAULT)
        assert set_to("0", "message.max.bytes", "300") == 0
        assert value_of(wire, BROKER, "0", "message.max.bytes") == ("300", DYNAMIC_BROKER)
        create_topic(wire, "t")
        assert produce(wire, "t", batch_of([bytes(400)])).error_code == 10
        assert set_to("0", "message.max.bytes", None) == 0
        assert produce(wire, "t", batch_of([bytes(400)])).error_code == 0
        assert produce(wire, "t", batch_of([bytes(500)])).error_code == 10
        assert value_of(wire, TOPIC, "t", "max.message.bytes") == ("500", DYNAMIC_DEFAULT)
        for read_only in ("num.partitions", "broker.id", "log.dirs"):
            assert set_to("0", read_only, "1") != 0, "it cannot be changed while running"
        assert set_to("0", "no.such", "1") == ErrorCode.INVALID_CONFIG
        assert set_to("0", "message.max.bytes", "-5") == ErrorCode.INVALID_CONFIG
        assert set_to("1", "message.max.bytes", "5") == ErrorCode.INVALID_REQUEST
        serving.stop()
        serving.start()
        with serving.connect() as again:
            assert value_of(again, BROKER, "0", "message.max.bytes") == ("500", DYNAMIC_DEFAULT)
            assert produce(again, "t", batch_of([bytes(500)])).error_code == 10


def test_what_is_advertised_is_told_as_the_brokers_own(tmp_path: Path) -> None:
    """Given at the start it is static, changed while the broker runs it is dynamic."""
    name, given = "advertised.listeners", "PLAINTEXT://127.0.0.1:1"
    with Serving(tmp_path, {name: given}) as serving, serving.connect() as wire:
        assert value_of(wire, BROKER, "0", name) == (given, STATIC)
        other = "PLAINTEXT://127.0.0.1:2"
        assert change(wire, BROKER, "0", (name, SET, other)).error_code == 0
        assert value_of(wire, BROKER, "0", name) == (other, DYNAMIC_BROKER)
        assert change(wire, BROKER, "0", (name, DELETE, None)).error_code == 0
        assert value_of(wire, BROKER, "0", name) == (given, STATIC)


def test_secrets_are_not_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A sensitive value is never in an answer, nor in its synonyms."""
    options = {"ssl.keystore.password": "hunter2"}
    with (
        Serving(tmp_path_factory.mktemp("secret"), options) as serving,
        serving.connect() as wire,
    ):
        result = describe(wire, BROKER, "0", include_synonyms=True)
        (config,) = [each for each in result.configs if each.name == "ssl.keystore.password"]
        assert (config.is_sensitive, config.value) == (True, None)
        assert "hunter2" not in repr(result)
        serving.lines.clear()


def test_resources_are_listed(serving: Serving, wire: Wire, topic: str) -> None:
    """v0 lists client metrics (none), v1 every asked type, no types all of them."""
    assert wire.ask(ListConfigResourcesRequest(), 0).config_resources == []

    def listed(*types: int) -> set[tuple[int, str]]:
        response = wire.ask(ListConfigResourcesRequest(resource_types=list(types)), 1)
        assert response.error_code == 0
        return {(each.resource_type, each.resource_name) for each in response.config_resources}

    assert (TOPIC, topic) in listed(TOPIC)
    assert listed(BROKER) == {(BROKER, "0")}
    assert listed() >= {(TOPIC, topic), (BROKER, "0"), (BROKER_LOGGER, "0")}
    bad = wire.ask(ListConfigResourcesRequest(resource_types=[99]), 1)
    assert bad.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_value_that_cannot_act_is_not_stored(tmp_path: Path) -> None:
    """Else the broker could not be started again."""
    with Serving(tmp_path) as serving, serving.connect() as wire:
        name = "max.connections.per.ip.overrides"
        for kind in ("0", ""):
            refused = change(wire, BROKER, kind, (name, SET, "nonsense"))
            assert refused.error_code == ErrorCode.INVALID_CONFIG
            assert "'nonsense' must be host:limit" in refused.error_message
        assert value_of(wire, BROKER, "0", name) == ("", DEFAULT)


def test_a_topic_outlives_a_change_of_the_brokers_defaults(tmp_path: Path) -> None:
    """Its own option and the new default contradict each other: no reason to stop serving it."""
    with Serving(tmp_path) as serving:
        with serving.connect() as wire:
            create_topic(wire, "t", configs={"min.compaction.lag.ms": "1000"})
            create_topic(wire, "u")
            lag = ("log.cleaner.max.compaction.lag.ms", SET, "500")
            assert change(wire, BROKER, "", lag).error_code == 0
            assert value_of(wire, TOPIC, "u", "max.compaction.lag.ms") == ("500", DYNAMIC_DEFAULT)
        serving.stop()
        serving.start()
        with serving.connect() as wire:
            assert produce(wire, "t", batch_of(["x"])).error_code == 0
            refused = change(wire, TOPIC, "t", ("min.compaction.lag.ms", SET, "2000"))
            assert refused.error_code == ErrorCode.INVALID_CONFIG
            assert "must be at most max.compaction.lag.ms (500)" in refused.error_message


def test_a_topic_whose_options_cannot_act_holds_up_no_other(tmp_path: Path) -> None:
    """What Apache Kafka stores in the same cluster may be what this broker refuses."""
    with Serving(tmp_path) as serving, serving.connect() as wire:
        create_topic(wire, "s")
        create_topic(wire, "t", configs={"segment.bytes": "5000"})
        create_topic(wire, "u")
        tiered = {"remote.storage.enable": "true"}
        serving.inside(lambda: serving.broker.configs_changed("topics", "t", tiered))
        serving.expect_line(
            "topic t: configs are invalid and have no effect: remote.storage.enable=true: refused"
        )
        assert change(wire, BROKER, "", ("log.segment.bytes", SET, "7000")).error_code == 0
        logs = [serving.broker.partitions[name, 0].log for name in ("s", "t", "u")]
        assert [log.options.segment_bytes for log in logs] == [7000, 5000, 7000]
        serving.inside(lambda: serving.broker.configs_changed("topics", "t", {}))
        assert logs[1].options.segment_bytes == 7000
        assert "topic t: configs are invalid" in serving.lines.of()[0]
        serving.lines.clear()  # the broker's notice of its own change may have told it once more
