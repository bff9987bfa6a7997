"""Asking a controller that is in the same broker: it is bounded as asking another one is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker import broker as module
from barnabas.broker.broker import Broker
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.wire.messages.controlled_shutdown import ControlledShutdownRequest


def test_a_controller_that_waits_for_its_tree_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a broker whose ZooKeeper is away could never be stopped."""

    async def never(broker: Broker, request: Any) -> Any:
        await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(module, "answer_here", never)
    here = Broker.__new__(Broker)
    here.controller = SimpleNamespace(term=object())  # type: ignore[assignment]
    with pytest.raises(RequestError, match="10 ms") as refusal:
        asyncio.run(here.ask_controller(ControlledShutdownRequest(broker_id=0), 10))
    assert refusal.value.code is ErrorCode.REQUEST_TIMED_OUT
