"""FindCoordinator: a failure is told to who asked, whatever the key and the version."""

from __future__ import annotations

import pytest
from tests.unit.broker.serving import Serving, Wire

from barnabas.coordination.contract import ServiceUnavailable
from barnabas.model.error_codes import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest


@pytest.mark.parametrize("key", ["", "g"])
def test_a_failure_is_told_in_every_version(
    serving: Serving, wire: Wire, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty key is one, too: before v4 it must not look like a list of none."""

    async def find(key: str) -> int:
        raise ServiceUnavailable("the tree is away")

    monkeypatch.setattr(serving.broker.groups, "find", find)
    for version in range(7):
        if version < 4:
            answer = wire.ask(FindCoordinatorRequest(key=key), version)
        else:
            (answer,) = wire.ask(
                FindCoordinatorRequest(coordinator_keys=[key]), version
            ).coordinators
            assert answer.key == key
        assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT, version
        assert (answer.node_id, answer.host, answer.port) == (-1, "", -1), version
        if version >= 1:
            assert answer.error_message == "the tree is away"
