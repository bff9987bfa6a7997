"""The registered brokers: which joined and left since the last look, and which were processed.

A broker that restarts may have lost what it had not flushed, and must leave the ISR before it
counts again. A controller that dies between such a restart and processing it leaves no trace; so
each controller records, after every membership change, which registrations it has processed. A
successor that finds a different registration assumes that the broker has restarted. At worst it is
wrong, and the broker is briefly out of the ISR.

Kafka's brokers neither write nor read that node. It is created when a second broker joins.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.controller.guarded_tree import GuardedTree
from barnabas.coordination.contract import Coordination, Create, NoNode, Set, Watch
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.cluster_view import BrokerView
from barnabas.model.errors import CorruptFileError

logger = logging.getLogger("barnabas.controller")

PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Security protocols, as brokers exchange them."""


class Turnover(NamedTuple):
    """The difference between two rosters; a restarted broker has both left and joined."""

    gone: list[int]
    come: list[int]
    moved: list[int]
    """Brokers with the same epoch and new addresses."""


class Roster:
    """Reads the registrations, leaving a watch for the next change."""

    def __init__(self, tree: Coordination, changed: Watch) -> None:
        self._tree = tree
        self._changed = changed

    async def read(self) -> dict[int, BrokerView]:
        """Return the live brokers; unreadable registrations are left out."""
        names = await self._tree.children(nodes.BROKER_IDS, self._changed)
        ids = sorted(int(name) for name in names if name.isdecimal())
        paths = [nodes.broker_path(broker_id) for broker_id in ids]
        found = await self._tree.get_many(paths, self._changed)
        brokers: dict[int, BrokerView] = {}
        for broker_id, path, got in zip(ids, paths, found, strict=True):
            if got is None:
                continue
            try:
                registration = nodes.BrokerRegistration.decode(path, got[0])
            except CorruptFileError as failure:
                logger.error(
                    "broker %d: registration unreadable, broker ignored: %s", broker_id, failure
                )
                continue
            brokers[broker_id] = _view(broker_id, registration, got[1].czxid)
        return brokers


class ProcessedRegistrations:
    """The registrations that controllers have processed."""

    def __init__(self, tree: GuardedTree) -> None:
        self._tree = tree
        self._there = False

    async def known(self) -> dict[int, int] | None:
        """Return the broker epochs that the last controller had processed, None if unknown."""
        try:
            data, _ = await self._tree.tree.get(nodes.LIVES)
        except NoNode:
            return None
        self._there = True
        try:
            return nodes.decode_lives(data)
        except CorruptFileError:
            return None  # as if it did not exist; it is overwritten next

    async def deal_with(self, brokers: Mapping[int, BrokerView]) -> None:
        """Record the registrations that have been processed.

        A broker that was always alone shares no ISR, and needs no node.
        """
        if len(brokers) < 2 and not self._there:
            return
        data = nodes.encode_lives({broker: view.epoch for broker, view in brokers.items()})
        change = Set(nodes.LIVES, data) if self._there else Create(nodes.LIVES, data)
        await self._tree.write([change])
        self._there = True


def turnover(known: Mapping[int, BrokerView], present: Mapping[int, BrokerView]) -> Turnover:
    """Compare two rosters: a new epoch means a restart."""
    gone = [b for b in sorted(known) if b not in present or present[b].epoch != known[b].epoch]
    come = [b for b in sorted(present) if b not in known or present[b].epoch != known[b].epoch]
    moved = [b for b in sorted(present) if b not in come and present[b] != known[b]]
    return Turnover(gone, come, moved)


def _view(broker_id: int, registration: nodes.BrokerRegistration, epoch: int) -> BrokerView:
    return BrokerView(
        broker_id,
        {name: (host, port) for name, host, port in registration.endpoints},
        registration.rack,
        epoch,
        {name: PROTOCOLS.get(text, 0) for name, text in registration.protocols.items()},
        registration.control_plane,
    )
