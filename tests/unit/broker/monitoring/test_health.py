"""Health: ready when nothing speaks for the contrary, and the first reason if something does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from barnabas.broker.lifecycle import _hindrance
from barnabas.broker.monitoring.health import Health
from barnabas.coordination.contract import SessionState


def test_a_broker_is_ready_while_it_serves() -> None:
    health = Health()
    assert health.reason == "starting"
    health.entered("starting: loading the logs")
    assert health.reason == "starting: loading the logs"
    health.serving()
    assert health.reason is None
    health.entered("stopping")
    assert health.reason == "stopping"


def test_the_first_check_that_fails_is_the_reason() -> None:
    reasons: dict[str, str | None] = {"first": None, "second": None}
    health = Health()
    health.serving(lambda: reasons["first"], lambda: reasons["second"])
    assert health.reason is None
    reasons["second"] = "the session is suspended"
    assert health.reason == "the session is suspended"
    reasons["first"] = "the disk has failed"
    assert health.reason == "the disk has failed"


@pytest.mark.parametrize(
    ("state", "is_silent", "reason"),
    [
        (SessionState.CONNECTED, False, None),
        (
            SessionState.SUSPENDED,
            False,
            "the session with the coordination service is suspended",
        ),
        (
            SessionState.CONNECTED,
            True,
            "its session may have ended: another broker may lead its partitions",
        ),
    ],
)
def test_a_broker_without_its_cluster_is_not_ready(
    state: SessionState, is_silent: bool, reason: str | None
) -> None:
    registration = SimpleNamespace(tree=SimpleNamespace(state=state))
    parts = SimpleNamespace(registration=registration, silence=SimpleNamespace(is_silent=is_silent))
    assert _hindrance(parts) == reason
