"""Where the console listens, and under which names browsers may ask for it."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple

from barnabas.model.errors import ConfigError

OPTION = "barnabas.console.listener"
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 8080


class ConsoleAddress(NamedTuple):
    """A host and a port to listen on."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> ConsoleAddress:
    """Parse `HOST:PORT`, `HOST`, `:PORT` or `PORT`; what is missing is the default."""
    rest = text.strip()
    host, port = rest, str(DEFAULT_PORT)
    if rest.startswith("["):
        host, bracket, tail = rest[1:].partition("]")
        if not bracket or (tail and not tail.startswith(":")):
            raise ConfigError(f"{OPTION}={text}: must be HOST:PORT")
        port = tail[1:] or port
    elif rest.isdecimal():
        host, port = DEFAULT_HOST, rest
    elif rest.count(":") == 1:
        host, _, port = rest.partition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"{OPTION}={text}: the port must be 0 to 65535")
    return ConsoleAddress(host or DEFAULT_HOST, int(port))


def check_exposure(address: ConsoleAddress, *, insecure: bool) -> None:
    """Raise ConfigError for an address that others can reach without TLS, unless that is wanted."""
    if not address.is_loopback and not insecure:
        raise ConfigError(
            f"{OPTION}={address}: without TLS the console listens on a loopback address; set "
            "barnabas.console.ssl.enable=true, or barnabas.console.insecure=true if a proxy with "
            "TLS is in front of it"
        )


class Hosts:
    """The names in `Host` headers that are answered.

    A page of another site can make its own name point to the loopback's address, and then read what
    the console says. Its requests still carry that name. Addresses cannot be pointed elsewhere.
    """

    def __init__(self, address: ConsoleAddress, further: Iterable[str] = ()) -> None:
        self._names = {"localhost", address.host.lower(), *(each.lower() for each in further)}

    def allows(self, host: str) -> bool:
        """Return whether a `Host` header, with or without a port, is one of the console's."""
        name = host.strip().lower()
        if name.startswith("["):
            name, bracket, tail = name[1:].partition("]")
            if not bracket or (tail and not _is_port(tail)):
                return False
        elif name.count(":") == 1:
            name, _, port = name.partition(":")
            if not port.isdecimal():
                return False
        name = name.removesuffix(".")
        if name in self._names:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


def _is_port(text: str) -> bool:
    return text.startswith(":") and text[1:].isdecimal()
