"""Entities of quotas: as requests name them, and where the coordination tree keeps them."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from barnabas.metadata import tree_schema as nodes
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.quotas.quota_keys import CLIENT_KEYS, IP_KEYS

if TYPE_CHECKING:
    from barnabas.metadata.config_store import ConfigStore

USER, CLIENT_ID, IP = "user", "client-id", "ip"
"""Types of entities on the wire."""

Entity = Mapping[str, str | None]
"""Names by type; None is the default of a type."""


class EntityPart(Protocol):
    """One part of an entity in a request."""

    entity_type: str
    entity_name: str | None


def parse_entity(parts: Iterable[EntityPart]) -> dict[str, str | None]:
    """Return the entity of a request; raise INVALID_REQUEST if there can be none like it."""
    entity: dict[str, str | None] = {}
    for part in parts:
        kind, name = part.entity_type, part.entity_name
        if kind not in (USER, CLIENT_ID, IP):
            raise _invalid(f"entity type {kind!r}: must be user, client-id or ip")
        if kind in entity:
            raise _invalid(f"entity type {kind} is named twice")
        if name is not None and name in ("", ".", "..", nodes.DEFAULT_ENTITY):
            raise _invalid(f"{kind} {name!r}: this name cannot have quotas")
        entity[kind] = name
    if not entity:
        raise _invalid("an entity needs a user, a client-id or an ip")
    if IP in entity and len(entity) > 1:
        raise _invalid("the quota of an ip belongs to no user or client-id")
    return entity


async def check_address(entity: Entity) -> None:
    """Raise INVALID_REQUEST unless the ip of an entity is an address, or a name that has one."""
    name = entity.get(IP)
    if name is None:
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        try:
            await asyncio.get_running_loop().getaddrinfo(name, None)
        except (socket.gaierror, UnicodeError):
            raise _invalid(f"ip {name!r}: must be an address or a host name") from None


def keys_of(entity: Entity) -> tuple[str, ...]:
    """Return the quotas that an entity can have."""
    return IP_KEYS if IP in entity else CLIENT_KEYS


def node_of(entity: Entity) -> tuple[str, str]:
    """Return the type and name under which the tree has an entity."""
    names = {kind: nodes.DEFAULT_ENTITY if name is None else name for kind, name in entity.items()}
    if IP in names:
        return "ips", names[IP]
    if USER not in names:
        return "clients", names[CLIENT_ID]
    if CLIENT_ID not in names:
        return "users", names[USER]
    return nodes.clients_of(names[USER]), names[CLIENT_ID]


async def read_entities(store: ConfigStore) -> list[tuple[Entity, dict[str, str]]]:
    """Return every entity that the tree has, and its configs."""
    found: list[tuple[Entity, dict[str, str]]] = []
    for kind, entity_type in ((USER, "users"), (CLIENT_ID, "clients"), (IP, "ips")):
        for name, values in (await store.get_all(entity_type)).items():
            found.append(({kind: _name(name)}, values))
    for entity_type, clients in (await store.get_all_clients()).items():
        user = _name(nodes.user_of(entity_type) or "")
        found += [({USER: user, CLIENT_ID: _name(each)}, clients[each]) for each in clients]
    return found


def _name(name: str) -> str | None:
    return None if name == nodes.DEFAULT_ENTITY else name


def _invalid(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, message)
