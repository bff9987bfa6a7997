"""Each step on the way to a broker is a fact, also where it fails."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from tests.network.scripted_broker import CLOSE, Script, ScriptedBroker

from barnabas.cli.doctor.connecting import Advertised, ClusterView, Versions
from barnabas.cli.doctor.probes import (
    Access,
    handshake,
    negotiate,
    reach,
    resolve,
    speaks_tls,
    view_cluster,
    visit,
)
from barnabas.client.addresses import Address
from barnabas.client.metadata import BrokerAddress, ClientMetadata
from barnabas.config.clients.admin import AdminOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
)
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

T = TypeVar("T")

TIMEOUT_MS = 20_000
ACCESS = Access(parse_client_options(AdminOptions, {}), "in a.properties", TIMEOUT_MS)


def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
    here = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=1)
    return MetadataResponse(brokers=[here], controller_id=1, cluster_id="c1")


WHOLE: Script = {
    MetadataRequest: metadata,
    ProduceRequest: lambda request, version: ProduceResponse(),
    FetchRequest: lambda request, version: FetchResponse(),
    ListOffsetsRequest: lambda request, version: ListOffsetsResponse(),
}


def at_broker(script: Script, work: Callable[[Address], Awaitable[T]]) -> T:
    async def conversation() -> T:
        async with ScriptedBroker(script) as broker:
            return await work(broker.address)

    return asyncio.run(conversation())


def closed_port() -> Address:
    """Return an address at which nobody listens: whoever listened there has just gone."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host, port = server.getsockname()
    return Address(host, port)


def test_addresses_of_a_host_are_named_once() -> None:
    found = asyncio.run(resolve(Address("127.0.0.1", 9092), TIMEOUT_MS))
    assert (found.addresses, found.failure) == (("127.0.0.1",), None)


def test_a_name_that_cannot_be_one_is_a_failure_of_the_name() -> None:
    found = asyncio.run(resolve(Address("a" * 64, 9092), TIMEOUT_MS))
    assert found.addresses == ()
    assert found.failure


def test_each_address_is_tried() -> None:
    found = at_broker({}, lambda address: reach(address, ("127.0.0.1",), TIMEOUT_MS))
    assert isinstance(found.outcomes["127.0.0.1"], float)
    lost = asyncio.run(reach(closed_port(), ("127.0.0.1",), TIMEOUT_MS))
    assert not lost.reached
    assert "refused" in str(lost.outcomes["127.0.0.1"])


@pytest.mark.parametrize("lacks", [(), (FetchRequest,), (ProduceRequest, ListOffsetsRequest)])
def test_what_clients_need_is_looked_for(lacks: tuple[type, ...]) -> None:
    async def ask(address: Address) -> Versions:
        versions, connection = await negotiate(ACCESS, address)
        assert connection is not None
        connection.abort()
        return versions

    script = {kind: answer for kind, answer in WHOLE.items() if kind not in lacks}
    found = at_broker(script, ask)
    assert found.lacking == tuple(kind.__name__.removesuffix("Request") for kind in lacks)
    assert found.apis == 1 + len(script), "ApiVersions itself, and those"


def test_without_a_broker_there_is_no_connection() -> None:
    address = closed_port()
    found, connection = asyncio.run(negotiate(ACCESS, address))
    assert connection is None
    assert found.failure is not None
    assert str(address.port) in found.failure


def test_a_broker_without_tls_does_not_speak_it() -> None:
    assert at_broker({}, lambda address: speaks_tls(address, TIMEOUT_MS)) is False


def test_tls_to_a_broker_without_it_says_which_option_to_set() -> None:
    tls = Access(
        parse_client_options(AdminOptions, {"security.protocol": "SSL"}), "in a.properties", 20_000
    )
    found = at_broker({}, lambda address: handshake(tls, address))
    assert found.version is None
    assert found.failure
    assert found.step is not None
    assert "set security.protocol=PLAINTEXT or SASL_PLAINTEXT in a.properties" in found.step


async def viewed(address: Address) -> ClusterView:
    connection = await ACCESS.open(address)
    try:
        return (await view_cluster(ACCESS, connection))[0]
    finally:
        connection.abort()


def test_a_cluster_is_described() -> None:
    view = at_broker(WHOLE, viewed)
    assert (view.cluster_id, view.brokers, view.controller_id) == ("c1", 1, 1)


def test_where_a_login_is_wanted_the_options_for_it_are_named() -> None:
    offer = SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN", "SCRAM-SHA-256"])
    script: Script = {
        MetadataRequest: lambda request, version: CLOSE,
        SaslHandshakeRequest: lambda request, version: offer,
    }
    view = at_broker(script, viewed)
    assert view.failure is not None
    assert view.step is not None
    assert "security.protocol=SASL_PLAINTEXT, sasl.mechanism (PLAIN, SCRAM-SHA-256)" in view.step
    assert view.step.endswith("in a.properties")


def test_a_visit_tells_who_is_there_and_who_else_is_sent_there() -> None:
    async def visited(address: Address) -> Advertised:
        view = ClientMetadata()
        view.brokers = {n: BrokerAddress(n, *address) for n in (1, 2)}
        view.brokers[3] = BrokerAddress(3, "elsewhere", 1)
        view.cluster_id = "another"
        return await visit(ACCESS, view.brokers[1], view, bootstrap_is_local=True)

    found = at_broker(WHOLE, visited)
    assert (found.shared_with, found.cluster_id, found.is_elsewhere) == ((2,), "c1", True)
    assert found.failure is None


def test_a_broker_that_is_not_where_it_says() -> None:
    broker = BrokerAddress(1, *closed_port())
    found = asyncio.run(visit(ACCESS, broker, ClientMetadata(), bootstrap_is_local=True))
    assert (found.cluster_id, found.elapsed_ms, found.shared_with) == (None, None, ())
    assert found.failure
