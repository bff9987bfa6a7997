"""What entries are about, as text: `orders-3`, `topic:orders`, `group:billing`, `broker:2`."""

from __future__ import annotations

TEXT_MAX = 200
"""Characters kept of a name that a client chose."""


def partition(topic: str, number: int) -> str:
    """Return the subject of a partition."""
    return f"{topic}-{number}"


def topic(name: str) -> str:
    """Return the subject of a topic."""
    return f"topic:{name}"


def group(group_id: str) -> str:
    """Return the subject of a group."""
    return f"group:{cut(group_id)}"


def broker(broker_id: int) -> str:
    """Return the subject of a broker."""
    return f"broker:{broker_id}"


def client(client_id: str | None, host: str) -> str:
    """Return the subject of a client, which may have no id."""
    return f"client:{cut(client_id)}@{host}" if client_id else f"client:{host}"


def transaction(transactional_id: str) -> str:
    """Return the subject of a transactional id."""
    return f"transaction:{cut(transactional_id)}"


def cut(text: str) -> str:
    """Limit a name that a client chose."""
    return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "…"


def configured(resource: str) -> str:
    """Return the subject of a resource whose configs change: `topic orders`, `broker 2`."""
    kind, _, name = resource.partition(" ")
    return f"{kind}:{cut(name)}"
