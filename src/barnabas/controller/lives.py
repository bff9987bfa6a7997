"""Which life of each broker a controller has taken account of, for its successor to read.

A broker that restarts may have lost what it had not flushed, and must leave the in-sync replicas
before it counts again. A controller that dies between a restart and its notice of it leaves nothing
behind that would tell; so each one writes down, after it has dealt with those that came and went,
whose registrations these were. A successor that finds another registration than the one written
down takes that broker for restarted. At worst it is wrong, and the broker is out of sync for a
moment.

The node is ours alone: Kafka's brokers neither write nor read it. It is made when a second broker
comes.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.controller.guarded_tree import GuardedTree
from barnabas.coordination.contract import Create, NoNode, Set
from barnabas.metadata import tree_schema as nodes
from barnabas.metadata.cluster_view import BrokerView
from barnabas.model.errors import CorruptFileError


class Lives:
    """The registrations that controllers have dealt with."""

    def __init__(self, tree: GuardedTree) -> None:
        self._tree = tree
        self._there = False

    async def known(self) -> dict[int, int] | None:
        """Return the epochs that the last controller had dealt with, None if that is not known."""
        try:
            data, _ = await self._tree.tree.get(nodes.LIVES)
        except NoNode:
            return None
        self._there = True
        try:
            return nodes.decode_lives(data)
        except CorruptFileError:
            return None  # as if nobody had written it; the next word is ours

    async def deal_with(self, brokers: Mapping[int, BrokerView]) -> None:
        """Write down whose registrations have been dealt with.

        A broker that was always alone is in sync with nobody, and needs no node.
        """
        if len(brokers) < 2 and not self._there:
            return
        data = nodes.encode_lives({broker: view.epoch for broker, view in brokers.items()})
        change = Set(nodes.LIVES, data) if self._there else Create(nodes.LIVES, data)
        await self._tree.write([change])
        self._there = True
