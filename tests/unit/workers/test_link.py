"""A worker's end of its channel: orders first, then reports, and the supervisor's end."""

from __future__ import annotations

import asyncio
import socket

from barnabas.workers.channel import InSync, Orders, decode_report, encode_orders
from barnabas.workers.link import SupervisorLink

ORDERS = Orders(1, {"broker.id": "1"}, None)


def test_a_worker_reports_and_notices_the_end() -> None:
    ours, theirs = socket.socketpair()
    ours.sendall(encode_orders(ORDERS))
    link = SupervisorLink(theirs.detach())
    assert link.orders == ORDERS

    async def live() -> None:
        ended = asyncio.Event()
        link.watch(asyncio.get_running_loop(), ended.set)
        link.report(InSync())
        assert decode_report(ours.recv(1000)) == InSync()
        ours.close()
        async with asyncio.timeout(60):
            await ended.wait()
        link.report(InSync())  # nobody reads it, and nothing happens

    asyncio.run(live())
    link._socket.close()
