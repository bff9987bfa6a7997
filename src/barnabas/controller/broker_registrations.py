"""The broker registrations that a controller has processed, for its successor to read.

A broker that restarts may have lost what it had not flushed, and must leave the ISR before it
counts again. A controller that dies between such a restart and processing it leaves no trace; so
each controller records, after every membership change, which registrations it has processed. A
successor that finds a different registration assumes that the broker has restarted. At worst it is
wrong, and the broker is briefly out of the ISR.

Kafka's brokers neither write nor read this node. It is created when a second broker joins.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.controller.guarded_tree import GuardedTree
from barnabas.coordination.contract import Create, NoNode, Set
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.cluster_view import BrokerView
from barnabas.model.errors import CorruptFileError


class BrokerRegistrations:
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
