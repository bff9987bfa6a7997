"""Configs as they act now: layers of a broker, overrides of topics, changes that are stored."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

import pytest

from barnabas.broker.cluster.configs import BROKER, GROUP, TOPIC, Configs
from barnabas.config.alteration import Change, Operation
from barnabas.config.broker import BrokerOptions
from barnabas.config.sources import BrokerSources
from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import ConfigError, RequestError


async def anything_goes(options: BrokerOptions) -> None:
    """Find nothing wrong with changed options."""


class Stored:
    """Keeps what was stored, and lets it act, as the controller does."""

    def __init__(self, **options: str) -> None:
        named = {name.replace("_", "."): value for name, value in options.items()}
        parsed = BrokerOptions.parse({"log.retention.ms": "9000", **named})
        self.configs = Configs(
            BrokerSources(parsed.given),
            lambda: 0,
            lambda topic: topic == "t",
            anything_goes,
            os.urandom,
        )
        self.calls: list[tuple[str, str, dict[str, str]]] = []

    async def __call__(self, entity_type: str, name: str, values: Mapping[str, str]) -> None:
        self.calls.append((entity_type, name, dict(values)))
        if entity_type == "topics":
            self.configs.set_topic(name, values)
        else:
            assert self.configs.set_dynamic(name, values)

    def alter(self, kind: int, name: str, *changes: Change, dry_run: bool = False) -> None:
        asyncio.run(self.configs.alter(kind, name, changes, self, dry_run=dry_run))

    def replace(self, kind: int, name: str, values: Mapping[str, str | None]) -> None:
        asyncio.run(self.configs.replace(kind, name, values, self, dry_run=False))


def put(name: str, value: str) -> Change:
    return Change(name, Operation.SET, value)


def test_topics_inherit_from_the_broker() -> None:
    """An override wins over the broker's value, which wins over the default."""
    stored = Stored()
    configs = stored.configs
    assert configs.topic_options({}).retention_ms == 9000
    assert configs.topic_options({"retention.ms": "5"}).retention_ms == 5
    assert configs.set_dynamic(nodes.DEFAULT_ENTITY, {"log.retention.ms": "7000"})
    assert configs.topic_options({}).retention_ms == 7000
    assert configs.set_dynamic("0", {"log.retention.ms": "6000"})
    assert configs.topic_options({}).retention_ms == 6000
    assert configs.set_dynamic("0", {})
    assert configs.topic_options({}).retention_ms == 7000


def test_what_cannot_act_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """A node of another broker, or one with nonsense, changes nothing; the latter is logged."""
    configs = Stored().configs
    before = configs.options

    def complaints() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.name == "barnabas.config"]

    assert not configs.set_dynamic("7", {"log.retention.ms": "1"})
    assert complaints() == []
    assert not configs.set_dynamic("0", {"log.retention.ms": "soon"})
    assert len(complaints()) == 1
    assert configs.options == before


def test_changes_are_stored_whole() -> None:
    """The store gets all values of the entity, not only the changed ones."""
    stored = Stored()
    stored.alter(TOPIC, "t", put("flush.ms", "7"))
    stored.alter(TOPIC, "t", put("retention.ms", "8"))
    assert stored.calls[-1] == ("topics", "t", {"flush.ms": "7", "retention.ms": "8"})
    stored.replace(TOPIC, "t", {"retention.ms": "9"})
    assert stored.calls[-1] == ("topics", "t", {"retention.ms": "9"})
    stored.alter(BROKER, "", put("log.retention.ms", "5"))
    assert stored.calls[-1] == ("brokers", nodes.DEFAULT_ENTITY, {"log.retention.ms": "5"})
    stored.replace(BROKER, "0", {"log.retention.ms": "4"})
    assert stored.calls[-1] == ("brokers", "0", {"log.retention.ms": "4"})


def test_dry_runs_store_nothing() -> None:
    stored = Stored()
    stored.alter(TOPIC, "t", put("flush.ms", "7"), dry_run=True)
    assert stored.calls == []


def test_refusals() -> None:
    """Resources that are not here, or cannot be configured."""
    stored = Stored()
    for kind, name, code in (
        (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "1", ErrorCode.INVALID_REQUEST),
        (GROUP, "g", ErrorCode.INVALID_REQUEST),
    ):
        with pytest.raises(RequestError) as refusal:
            stored.alter(kind, name, put("retention.ms", "1"))
        assert refusal.value.code == code
        with pytest.raises(RequestError):
            stored.replace(kind, name, {})
    with pytest.raises(ConfigError):
        stored.configs.check_topic({"retention.ms": "soon"})
    assert stored.calls == []


def test_changes_do_not_overlap() -> None:
    """A change waits for the one before it, and builds on its outcome."""

    async def story() -> None:
        stored = Stored()
        gate = asyncio.Event()

        async def slow(entity_type: str, name: str, values: Mapping[str, str]) -> None:
            await gate.wait()
            await stored(entity_type, name, values)

        first = asyncio.create_task(
            stored.configs.alter(TOPIC, "t", [put("flush.ms", "1")], slow, dry_run=False)
        )
        second = asyncio.create_task(
            stored.configs.alter(TOPIC, "t", [put("retention.ms", "2")], slow, dry_run=False)
        )
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(first, second)
        assert stored.calls[-1] == ("topics", "t", {"flush.ms": "1", "retention.ms": "2"})

    asyncio.run(story())


def test_forgotten_topics() -> None:
    """A deleted topic's overrides do not come back with its name."""
    configs = Stored().configs
    configs.set_topic("t", {"retention.ms": "1"})
    configs.set_topic("t", None)
    assert configs.overrides_of("t") == {}


SECRET = "listener.name.a.ssl.keystore.password"


def test_secrets_are_stored_encrypted_and_take_effect() -> None:
    stored = Stored(password_encoder_secret="s")
    stored.alter(BROKER, "0", Change(SECRET, Operation.SET, "hush"))
    ((_, _, values),) = stored.calls
    assert "hush" not in str(values)
    seen = stored.configs.options.for_listener("A").ssl_keystore_password
    assert seen is not None
    assert seen.value == "hush"


def test_an_unchanged_secret_stays_when_another_option_changes() -> None:
    stored = Stored(password_encoder_secret="s")
    stored.alter(BROKER, "0", Change(SECRET, Operation.SET, "hush"))
    stored.alter(BROKER, "0", Change("log.cleaner.threads", Operation.SET, "2"))
    seen = stored.configs.options.for_listener("A").ssl_keystore_password
    assert seen is not None
    assert seen.value == "hush"
    assert "hush" not in str(stored.calls)


def test_without_a_secret_of_the_encoder_no_password_is_stored() -> None:
    stored = Stored()
    with pytest.raises(RequestError, match=r"set password\.encoder\.secret"):
        stored.alter(BROKER, "0", Change(SECRET, Operation.SET, "hush"))
    assert stored.calls == []


def test_what_another_secret_encrypted_has_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    stored, other = Stored(password_encoder_secret="s"), Stored(password_encoder_secret="t")
    stored.alter(BROKER, "0", Change(SECRET, Operation.SET, "hush"))
    ((_, name, values),) = stored.calls
    assert not other.configs.set_dynamic(name, values)
    assert "not the one that encrypted" in caplog.text
