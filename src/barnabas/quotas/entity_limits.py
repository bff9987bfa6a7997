"""The limits of one kind of quota: which one applies to a client, and with whom it shares it.

A quota belongs to a user, a client id, a user's client id, or the default of either. The first
that is set applies:

    users/ada/clients/web          users/<default>/clients/web          clients/web
    users/ada/clients/<default>    users/<default>/clients/<default>    clients/<default>
    users/ada                      users/<default>

down the first column, then the second, then the third. Its kind says who shares one sensor: all
clients of a user, all users of a client id, or each pair on its own.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Level(Enum):
    """What stands for a name: the default of its type, or nothing."""

    DEFAULT = "<default>"
    ABSENT = ""


DEFAULT, ABSENT = Level.DEFAULT, Level.ABSENT
UNLIMITED = float("inf")


class Entity(NamedTuple):
    """The owner of a quota; a part that is absent is of no matter to it."""

    user: str | Level = ABSENT
    client_id: str | Level = ABSENT


class Sharing(NamedTuple):
    """Who shares one sensor: a user, a client id, or a pair; None is every one."""

    user: str | None
    client_id: str | None


class EntityLimits:
    """Limits by entity."""

    def __init__(self) -> None:
        self._limits: dict[Entity, float] = {}
        self._by_user = False
        self._by_client_id = False
        self._by_pair = False

    @property
    def any_ever(self) -> bool:
        """Return whether a limit is set, or was."""
        return self._by_user or self._by_client_id or self._by_pair

    def set(self, entity: Entity, limit: float | None) -> bool:
        """Set or remove the limit of an entity; return whether that changed anything."""
        before = self._limits.get(entity)
        if limit == before:
            return False
        if limit is None:
            del self._limits[entity]
            return True
        self._limits[entity] = limit
        if entity.user is ABSENT:
            self._by_client_id = True
        elif entity.client_id is ABSENT:
            self._by_user = True
        else:
            self._by_pair = True
        return True

    def find(self, user: str, client_id: str) -> tuple[float, Sharing]:
        """Return the limit of a client and who shares it; unlimited if none applies."""
        limits = self._limits
        for owner in (user, DEFAULT):
            for part in (client_id, DEFAULT, ABSENT):
                limit = limits.get(Entity(owner, part))
                if limit is not None:
                    return limit, Sharing(user, None if part is ABSENT else client_id)
        for part in (client_id, DEFAULT):
            limit = limits.get(Entity(ABSENT, part))
            if limit is not None:
                return limit, Sharing(None, client_id)
        # Still measured, by the kind of limits that there have been: one may be set later.
        if self._by_pair or (self._by_user and self._by_client_id):
            return UNLIMITED, Sharing(user, client_id)
        return UNLIMITED, Sharing(user, None) if self._by_user else Sharing(None, client_id)
