"""`kafka-broker-api-versions`: which APIs each broker serves, and in which versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import BOOTSTRAP, COMMAND_CONFIG, Flags, Given
from barnabas.cli.session import run as run_session
from barnabas.model.errors import BarnabasError

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient
    from barnabas.client.negotiation import PeerVersions

FLAGS = Flags(
    "Show which APIs brokers serve, in which versions, and which of them clients use.",
    (BOOTSTRAP._replace(required=True), COMMAND_CONFIG),
)


def run(given: Given) -> None:
    """Do what is asked for."""
    run_session(given.connection(), _show)


async def _show(client: ClusterClient) -> None:
    from barnabas.admin.cluster import api_versions

    for broker in sorted(client.cluster.brokers.values(), key=lambda broker: broker.node_id):
        rack = "null" if broker.rack is None else broker.rack
        address = f"{broker.host}:{broker.port} (id: {broker.node_id} rack: {rack})"
        try:
            versions = await api_versions(client, broker.node_id)
        except BarnabasError as failure:
            print(f"{address} -> ERROR: {failure}")
        else:
            print(f"{address} -> (\n{_lines(versions)}\n)")


def _lines(versions: PeerVersions) -> str:
    from barnabas.wire.apis import API_BY_KEY, OWN_KEYS_FROM

    asked = {key for key, api in API_BY_KEY.items() if not api.cluster_action}
    expected = {key for key in asked if key < OWN_KEYS_FROM}
    lines = []
    for key in sorted(expected | versions.ranges.keys()):
        api, served = API_BY_KEY.get(key), versions.ranges.get(key)
        head = f"\t{'UNKNOWN' if api is None else api.name}({key}): "
        if served is None:
            lines.append(f"{head}UNSUPPORTED")
            continue
        lowest, highest = served
        text = str(lowest) if lowest == highest else f"{lowest} to {highest}"
        lines.append(f"{head}{text}{'' if api is None else _usable(api.stable_versions, served)}")
    return ",\n".join(lines)


def _usable(ours: tuple[int, int], theirs: tuple[int, int]) -> str:
    """Return which version clients use."""
    if ours[1] < theirs[0]:
        return " [unusable: node too new]"
    if theirs[1] < ours[0]:
        return " [unusable: node too old]"
    return f" [usable: {min(ours[1], theirs[1])}]"
