"""How a broker leaves its cluster in order: others lead what it leads, before it goes.

It takes no longer than one request may. A controller that has lost its tree can decide nothing, and
to wait for it is in vain.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from barnabas.coordination.contract import SessionState
from barnabas.model.errors import BarnabasError
from barnabas.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger("barnabas.broker")


async def hand_over(broker: Broker) -> None:
    """Have others lead what a broker leads, as far as they can."""
    options = broker.options
    if not options.controlled_shutdown_enable:
        return
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(options.controller_socket_timeout_ms / 1000):
            if await _leads_nothing_more(broker):
                return
    logger.warning("the broker stops although it may still lead partitions")


async def _leads_nothing_more(broker: Broker) -> bool:
    """Ask the controller, again and again, to let others lead; tell whether they do."""
    options = broker.options
    request = ControlledShutdownRequest(
        broker_id=broker.broker_id, broker_epoch=broker.broker_epoch
    )
    for _ in range(options.controlled_shutdown_max_retries):
        if not broker.cluster.brokers.keys() - {broker.broker_id}:
            return True  # there is nobody to lead instead
        if broker.controller.term is not None and broker.tree.state is not SessionState.CONNECTED:
            return False
        try:
            answer = await broker.ask_controller(request, options.controller_socket_timeout_ms)
            assert isinstance(answer, ControlledShutdownResponse)
            if not answer.error_code and not answer.remaining_partitions:
                return True
        except BarnabasError as failure:
            logger.info("the controller cannot be told of the shutdown: %s", failure)
        await asyncio.sleep(options.controlled_shutdown_retry_backoff_ms / 1000)
    return False
