"""Listeners: where a broker listens, what it advertises to clients, and how each is secured.

    protocols = "INSIDE:PLAINTEXT,OUTSIDE:SSL"
    listeners = parse_listeners("INSIDE://:9092,OUTSIDE://[::1]:0", None, protocols)
    listeners.bind[0]                                       # Endpoint("INSIDE", "", 9092, …)
    listeners.advertise({"OUTSIDE": 40123}, "broker-1")     # once the ports are known

An empty host means all interfaces, port 0 a port that the system chooses. Names are kept in upper
case. Nothing here opens a socket or resolves a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from barnabas.model.errors import ConfigError

_ENDPOINT = re.compile(
    r"(?P<name>[^:/]+)://(?:\[(?P<ipv6>[^\]]+)\]|(?P<host>[^:\[\]]*)):(?P<port>-?[0-9]+)"
)
_ALL_INTERFACES = ("", "0.0.0.0", "::")


class SecurityProtocol(IntEnum):
    """How a listener is secured; the numbers are those that brokers exchange."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @property
    def uses_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def uses_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class Endpoint(NamedTuple):
    """One listener: its name, address and security protocol."""

    name: str
    host: str
    port: int
    protocol: SecurityProtocol

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


class Listeners(NamedTuple):
    """All listeners of a broker."""

    bind: tuple[Endpoint, ...]
    advertised: tuple[Endpoint, ...]
    inter_broker: str
    control_plane: str | None
    dialled: bool
    """Whether advertised.listeners is unset, so that clients get the address that they dialled."""

    def advertise(self, ports: Mapping[str, int], default_host: str) -> tuple[Endpoint, ...]:
        """Return the endpoints to advertise, once the listeners are bound.

        `ports` has the bound port of each listener; `default_host` replaces all interfaces.
        """
        return tuple(
            endpoint._replace(
                host=default_host if endpoint.host in _ALL_INTERFACES else endpoint.host,
                port=endpoint.port or ports[endpoint.name],
            )
            for endpoint in self.advertised
        )


def parse_listeners(
    listeners: str,
    advertised: str | None,
    protocol_map: str,
    *,
    inter_broker_name: str | None = None,
    inter_broker_protocol: str | None = None,
    control_plane_name: str | None = None,
) -> Listeners:
    """Parse the options that describe listeners; raise ConfigError if they conflict."""
    protocols = parse_protocol_map(protocol_map)
    bind = parse_endpoints("listeners", listeners, protocols)
    _check_ports(bind)
    published = bind
    if advertised is not None:
        published = parse_endpoints("advertised.listeners", advertised, protocols)
        for endpoint in published:
            if endpoint.host in ("0.0.0.0", "::"):
                raise ConfigError(
                    f"advertised.listeners={endpoint}: clients cannot connect to {endpoint.host}"
                )
    names = [endpoint.name for endpoint in bind]
    for endpoint in published:
        if endpoint.name not in names:
            raise ConfigError(
                f"advertised.listeners={endpoint}: {endpoint.name} is not among listeners "
                f"({listeners})"
            )
    inter_broker = _inter_broker(published, inter_broker_name, inter_broker_protocol)
    control_plane = control_plane_name.upper() if control_plane_name else None
    if control_plane is not None:
        wrong = None
        if control_plane not in protocols:
            wrong = f"not in listener.security.protocol.map ({protocol_map})"
        elif control_plane not in names:
            wrong = f"not among listeners ({listeners})"
        elif all(endpoint.name != control_plane for endpoint in published):
            wrong = f"not among advertised.listeners ({advertised}), where the controller looks"
        elif control_plane == inter_broker:
            wrong = "must differ from the inter-broker listener"
        if wrong is not None:
            raise ConfigError(f"control.plane.listener.name={control_plane_name}: {wrong}")
    return Listeners(bind, published, inter_broker, control_plane, advertised is None)


def check_change(before: Listeners, after: Listeners) -> None:
    """Raise ConfigError unless a running broker can change to other listeners."""
    protocols = {endpoint.name: endpoint.protocol for endpoint in before.bind}
    for endpoint in after.bind:
        present = protocols.get(endpoint.name, endpoint.protocol)
        if endpoint.protocol is not present:
            raise ConfigError(
                f"listener.security.protocol.map={endpoint.name}:{endpoint.protocol.name}: the "
                f"listener is open as {present.name}; add one of another name instead"
            )


def parse_protocol_map(text: str) -> dict[str, SecurityProtocol]:
    """Parse `NAME:PROTOCOL,…`; raise ConfigError for an unknown protocol or a duplicate name."""
    protocols: dict[str, SecurityProtocol] = {}
    for entry in _entries(text):
        name, _, protocol = (part.strip().upper() for part in entry.partition(":"))
        if not name or protocol not in SecurityProtocol.__members__:
            known = ", ".join(SecurityProtocol.__members__)
            raise ConfigError(
                f"listener.security.protocol.map={entry}: must be NAME:PROTOCOL, one of {known}"
            )
        if name in protocols:
            raise ConfigError(f"listener.security.protocol.map={text}: {name} is given twice")
        protocols[name] = SecurityProtocol[protocol]
    return protocols


def parse_endpoints(
    option: str, text: str, protocols: Mapping[str, SecurityProtocol]
) -> tuple[Endpoint, ...]:
    """Parse `NAME://host:port,…`: at least one endpoint, with unique names."""
    endpoints: dict[str, Endpoint] = {}
    for entry in _entries(text):
        match = _ENDPOINT.fullmatch(entry)
        if match is None:
            raise ConfigError(f"{option}={entry}: must be NAME://host:port")
        name = match["name"].upper()
        port = int(match["port"])
        if not 0 <= port <= 65_535:
            raise ConfigError(f"{option}={entry}: the port must be 0 to 65535")
        if name in endpoints:
            raise ConfigError(f"{option}={text}: the name {name} is given twice")
        if name not in protocols:
            raise ConfigError(
                f"{option}={entry}: listener.security.protocol.map has no protocol for {name}"
            )
        host = match["ipv6"] or match["host"] or ""
        endpoints[name] = Endpoint(name, host, port, protocols[name])
    if not endpoints:
        raise ConfigError(f"{option}={text}: at least one listener is required")
    return tuple(endpoints.values())


def _check_ports(endpoints: tuple[Endpoint, ...]) -> None:
    """Reject duplicate ports, unless one is for IPv4 and the other for IPv6."""
    seen: dict[tuple[int, bool], Endpoint] = {}
    for endpoint in endpoints:
        other = seen.setdefault((endpoint.port, ":" in endpoint.host), endpoint)
        if endpoint.port != 0 and other is not endpoint:
            raise ConfigError(f"listeners={endpoint}: the port is taken by {other}")


def _inter_broker(advertised: tuple[Endpoint, ...], name: str | None, protocol: str | None) -> str:
    if name is not None and protocol is not None:
        raise ConfigError(
            f"inter.broker.listener.name={name}: security.inter.broker.protocol is set, too; "
            "only one of them may be"
        )
    option = "security.inter.broker.protocol" if name is None else "inter.broker.listener.name"
    wanted = (name or protocol or "PLAINTEXT").upper()
    names = [endpoint.name for endpoint in advertised]
    if wanted not in names:
        raise ConfigError(
            f"{option}={wanted}: no advertised listener has this name ({', '.join(names)}); "
            "set inter.broker.listener.name"
        )
    return wanted


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]
