"""The registered brokers, and which joined and left since the last look."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.coordination.contract import Coordination, Watch
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
