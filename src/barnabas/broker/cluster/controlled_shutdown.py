"""Controlled shutdown: a broker has its leaderships moved to others before it stops.

It takes no longer than one request may. A controller that has lost its tree can decide nothing, so
it is not waited for.
"""

from __future__ import annotations

import asyncio
import logging

from barnabas.broker.cluster.controller_host import ControllerHost
from barnabas.broker.cluster.controller_requests import BrokerToController
from barnabas.broker.cluster.registration import Registration
from barnabas.config.broker import BrokerOptions
from barnabas.coordination.contract import SessionState
from barnabas.metadata.cluster_view import ClusterView
from barnabas.model.errors import BarnabasError
from barnabas.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)

logger = logging.getLogger("barnabas.broker")


async def hand_over(
    options: BrokerOptions,
    registration: Registration,
    cluster: ClusterView,
    controller: ControllerHost,
    to_controller: BrokerToController,
) -> None:
    """Move this broker's leaderships to others, as far as possible."""

    async def leads_nothing() -> bool:
        """Send ControlledShutdown until no leadership remains; return whether that succeeded."""
        request = ControlledShutdownRequest(
            broker_id=registration.broker_id, broker_epoch=registration.epoch
        )
        for _ in range(options.controlled_shutdown_max_retries):
            if not cluster.brokers.keys() - {registration.broker_id}:
                return True  # no other broker could lead
            connected = registration.tree.state is SessionState.CONNECTED
            if controller.term is not None and not connected:
                return False
            try:
                answer = await to_controller.ask(request, options.controller_socket_timeout_ms)
                assert isinstance(answer, ControlledShutdownResponse)
                if not answer.error_code and not answer.remaining_partitions:
                    return True
            except BarnabasError as failure:
                logger.info(
                    "broker %d: ControlledShutdown not delivered: controller=%d: %s",
                    registration.broker_id,
                    cluster.controller_id,
                    failure,
                )
            await asyncio.sleep(options.controlled_shutdown_retry_backoff_ms / 1000)
        return False

    tree = registration.tree
    if not options.controlled_shutdown_enable or tree.state is SessionState.EXPIRED:
        return  # for the others, a broker whose session has expired is dead already
    handing = asyncio.ensure_future(leads_nothing())

    def changed(state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            handing.cancel()

    tree.add_session_listener(changed)
    try:
        await asyncio.wait([handing], timeout=options.controller_socket_timeout_ms / 1000)
    finally:
        tree.remove_session_listener(changed)
        is_over = handing.done()
        handing.cancel()
    if is_over and (handing.cancelled() or handing.result()):
        return
    logger.warning(
        "broker %d: controlled shutdown failed, stopping while it may still lead partitions: "
        "controller=%d",
        registration.broker_id,
        cluster.controller_id,
    )
