"""The client at the other end of a connection, as every handler sees it."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.config.listeners import SecurityProtocol
from barnabas.security.principal import ANONYMOUS, Principal


@dataclass(slots=True)
class Session:
    """One connection's identity; the client's software is learned from its ApiVersions request."""

    listener: str
    """Name of the listener that accepted the connection."""
    client_host: str
    dialled_host: str
    """The address that the client dialled: what is advertised to it if nothing else is."""
    principal: Principal = ANONYMOUS
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    """How the listener is secured."""
    by_token: bool = False
    """Whether the client has logged in with a delegation token."""
    number: int = 0
    """The number of this connection on its listener, in the order of acceptance."""
    privileged: bool = False
    """Whether controller requests are served: on the control plane, or anywhere without one."""
    api_key: int = -1
    """The API of the request in progress, or of the last one; a connection has one at a time."""
    software_name: str = "unknown"
    software_version: str = "unknown"
    client_port: int = 0
    client_id: str | None = None
    """The client id of the last request that was looked at; None while nobody looks."""
    records_due: float = 0.0
    """When the next Produce or Fetch request is looked at: see `request_watch`."""
    others_due: float = 0.0
    """When the next request of another API is."""
