"""Bootstrap addresses as people write them: `host:port`, comma separated, IPv6 in brackets."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.model.errors import ConfigError

DEFAULT_PORT = 9092


class Address(NamedTuple):
    """A host (name or IP address) and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(text: str) -> list[Address]:
    """Parse a list like `a:9092,b:9093,[::1]:9092`; the default port is 9092."""
    addresses = [parse_address(part.strip()) for part in text.split(",") if part.strip()]
    if not addresses:
        raise ConfigError(f"bootstrap addresses {text!r}: must have at least one host:port")
    return addresses


def parse_address(text: str) -> Address:
    """Parse one `host:port`."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        well_formed = bool(bracket) and (rest == "" or rest.startswith(":"))
        port_text = rest[1:] if rest else str(DEFAULT_PORT)
    else:
        host, colon, port_text = text.partition(":")
        well_formed = ":" not in port_text
        port_text = port_text if colon else str(DEFAULT_PORT)
    if not (well_formed and host and port_text.isdigit() and 0 < int(port_text) < 65536):
        raise ConfigError(
            f"bootstrap address {text!r} must be host:port (IPv6 addresses in brackets)"
        )
    return Address(host, int(port_text))
