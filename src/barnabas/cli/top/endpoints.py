"""Where brokers serve their metrics: as given, or as their options say; and how to read them."""

from __future__ import annotations

import argparse
import ipaddress
import os
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.admin.config_entries import ConfigResourceType, Resource
from barnabas.admin.configs import describe_resources
from barnabas.cli.top.page import Page, read_page
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import BrokerAddress
from barnabas.model.errors import BarnabasError, RequestError

LISTENER = "barnabas.metrics.listener"
TLS = "barnabas.metrics.ssl.enable"
TOKEN = "BARNABAS_METRICS_TOKEN"
"""The environment's variable with the bearer token for the endpoints (barnabas.metrics.token)."""

SUBJECTS = ("broker", "requests", "topics")
"""What is asked for: not the series of partitions and groups, which are many."""
PAGE_BYTES_MAX = 64 << 20


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the metrics of a broker are; below 0 it is not known of which."""

    key: int
    url: str


def parse_endpoint(text: str) -> tuple[int | None, str]:
    """Parse `URL` or `BROKER=URL`."""
    number, equals, url = text.partition("=")
    broker = None
    if equals and number.isascii() and number.isdecimal():
        broker, text = int(number), url
    if not text.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not URL or BROKER=URL, like 1=http://broker1:9404/metrics"
        )
    return broker, text


def given_endpoints(parsed: Iterable[tuple[int | None, str]]) -> list[Endpoint]:
    """Return the endpoints that were named, each with a key of its own."""
    return [
        Endpoint(-1 - number if broker is None else broker, url)
        for number, (broker, url) in enumerate(parsed)
    ]


async def known_endpoints(
    client: ClusterClient, brokers: Iterable[BrokerAddress]
) -> list[Endpoint]:
    """Return what the brokers' options say; none on Apache Kafka, or if they may not be read."""
    addresses = {str(broker.node_id): broker for broker in brokers}
    resources = {Resource(ConfigResourceType.BROKER, name): [LISTENER, TLS] for name in addresses}
    try:
        described = await describe_resources(client, resources)
    except BarnabasError:
        return []
    endpoints = []
    for resource, entries in described.items():
        if isinstance(entries, RequestError):
            continue
        values = {entry.name: entry.value or "" for entry in entries}
        broker = addresses[resource.name]
        url = endpoint_url(values.get(LISTENER, ""), broker.host, tls=values.get(TLS) == "true")
        if url is not None:
            endpoints.append(Endpoint(broker.node_id, url))
    return endpoints


def endpoint_url(listener: str, broker_host: str, *, tls: bool) -> str | None:
    """Return the URL of a metrics listener as seen from here; None if that cannot be reached.

    A listener on all addresses is at the broker's own; one on loopback is reachable only if the
    broker is.
    """
    host, colon, port = listener.rpartition(":")
    host = host.strip("[]")
    if not colon or not port.isdecimal() or port == "0":
        return None
    if host in ("", "0.0.0.0", "::"):
        host = broker_host
    elif _is_loopback(host) and not _is_loopback(broker_host):
        return None
    named = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{named}:{port}/metrics"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def fetch_page(url: str, timeout_s: float) -> Page:
    """Read a page of metrics; blocks. Raises OSError or ValueError."""
    import http.client
    import urllib.request

    query = "&".join(f"collect[]={subject}" for subject in SUBJECTS)
    request = urllib.request.Request(f"{url}{'&' if '?' in url else '?'}{query}")
    token = os.environ.get(TOKEN)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            text: bytes = answer.read(PAGE_BYTES_MAX)
    except http.client.HTTPException as failure:
        raise OSError(str(failure) or type(failure).__name__) from failure
    return read_page(text.decode(errors="replace"))
