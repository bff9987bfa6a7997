"""TLS on a real broker: requests of all sizes, and clients that are slow, silent or wrong."""

from __future__ import annotations

import contextlib
import gc
import ssl
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.certificates import Authority, Issued
from tests.unit.broker.encrypted import CLIENT, ROOT, EncryptedServing
from tests.unit.broker.serving import (
    Wire,
    batch_of,
    create_topic,
    fetch,
    fetch_request,
    metadata,
    produce,
    produce_request,
    values_of,
    wait_for,
)

from barnabas.broker.network.connection import Connection
from barnabas.broker.network.tls_transport import TlsTransport
from barnabas.tls.channel import SLICE_BYTES
from barnabas.wire.frame import request_frame
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.produce import ProduceRequest


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EncryptedServing]:
    """A broker to whom clients may show certificates."""
    options = {"ssl.client.auth": "requested", "socket.send.buffer.bytes": 65_536}
    with EncryptedServing(tmp_path_factory.mktemp("secured"), options) as running:
        yield running


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[EncryptedServing]:
    """A broker to whom clients must show certificates."""
    with EncryptedServing(tmp_path, {"ssl.client.auth": "required"}) as running:
        yield running


def connections(serving: EncryptedServing) -> list[Connection]:
    return [
        each
        for listener in serving.broker.parts.network._listeners
        for each in listener.connections
    ]


def principals(serving: EncryptedServing) -> list[str]:
    return serving.inside(lambda: [str(each.session.principal) for each in connections(serving)])


def layer_of(connection: Connection) -> TlsTransport:
    layer = connection._transport
    assert isinstance(layer, TlsTransport)
    return layer


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_records_go_in_and_out(secured: EncryptedServing, version: ssl.TLSVersion) -> None:
    context = secured.client_context(minimum_version=version, maximum_version=version)
    with secured.connect_encrypted(context=context) as wire:
        topic = f"both-ways-{version.name}"
        create_topic(wire, topic)
        assert produce(wire, topic, batch_of(["a", "b"])).error_code == 0
        assert values_of(fetch(wire, topic)) == [b"a", b"b"]


def test_the_principal_is_the_subject(secured: EncryptedServing) -> None:
    with secured.connect_encrypted(CLIENT), secured.connect_encrypted() as anonymous:
        metadata(anonymous)
        expected = ["User:ANONYMOUS", "User:CN=alice"]
        wait_for(lambda: sorted(principals(secured)) == expected, "both are known")


def test_rules_map_the_subject(tmp_path: Path) -> None:
    rules = "RULE:^CN=(alice)$/$1/U"
    options = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": rules}
    with EncryptedServing(tmp_path, options) as serving:
        with serving.connect_encrypted(CLIENT) as wire:
            metadata(wire)
            assert principals(serving) == ["User:ALICE"]
        with serving.connect_encrypted(ROOT.issue("bob")) as wire:
            assert wire.read_frame() is None
        serving.expect_line("no rule of ssl.principal.mapping.rules matches 'CN=bob'")


def test_frames_of_five_megabytes(secured: EncryptedServing) -> None:
    with secured.connect_encrypted() as wire:
        create_topic(wire, "large", configs={"max.message.bytes": str(8 << 20)})
        value = bytes(range(256)) * (5 << 12)
        for _ in range(3):
            assert produce(wire, "large", batch_of([value])).error_code == 0
        result = fetch(wire, "large", partition_max_bytes=1 << 26)
        assert values_of(result) == [value] * 3


def test_pipelined_requests_keep_their_order(secured: EncryptedServing) -> None:
    with secured.connect_two_ways() as wire:
        create_topic(wire, "pipelined")
        sent = []
        for number in range(200):
            batch = batch_of([bytes(5000)])
            sent.append(request_frame(produce_request("pipelined", batch), 9, 2 * number, "x"))
            sent.append(request_frame(ApiVersionsRequest(), 0, 2 * number + 1, "x"))
        sender = threading.Thread(target=wire.socket.sendall, args=(b"".join(sent),))
        sender.start()
        for number in range(200):
            assert wire.receive(ProduceRequest, 9)[0] == 2 * number
            assert wire.receive(ApiVersionsRequest, 0)[0] == 2 * number + 1
        sender.join(60)


def test_a_flood_behind_a_waiting_request_is_held_back_and_then_answered(
    secured: EncryptedServing,
) -> None:
    """What was decrypted too early waits, in order, and no more of it than a few records."""
    with secured.connect_two_ways() as flood, secured.connect_encrypted() as other:
        create_topic(other, "flood")
        flood.send(fetch_request("flood", max_wait_ms=60_000), 12)
        count = 3000
        frames = [request_frame(ApiVersionsRequest(), 0, n, "x" * 1000) for n in range(count)]
        sender = threading.Thread(target=flood.socket.sendall, args=(b"".join(frames),))
        sender.start()

        def held() -> bool:
            return any(layer_of(each)._paused for each in connections(secured))

        secured.wait_inside(held, "the connection has stopped reading")
        produce(other, "flood", batch_of(["go"]))
        assert flood.receive(FetchRequest, 12)[0] == 1
        for number in range(count):
            assert flood.receive(ApiVersionsRequest, 0)[0] == number
        sender.join(60)


def test_a_slow_reader_holds_little_memory(secured: EncryptedServing) -> None:
    """A large answer is encrypted only as fast as it is read."""
    with secured.connect_encrypted() as wire:
        create_topic(wire, "slow")
        for _ in range(24):
            assert produce(wire, "slow", batch_of([bytes(900_000)])).error_code == 0
        wire.send(fetch_request("slow", partition_max_bytes=1 << 26), 12)

        def stalled() -> Connection | None:
            for each in connections(secured):
                sending = each._file_send
                if sending is not None and sending.stalled_since_ms is not None:
                    return each
            return None

        secured.wait_inside(stalled, "the answer waits for its reader")

        def buffered() -> int:
            connection = stalled()
            assert connection is not None
            layer = layer_of(connection)
            assert layer._channel._outgoing.pending == 0
            return layer.get_write_buffer_size()

        assert secured.inside(buffered) < 4 * SLICE_BYTES
        _, answer = wire.receive(FetchRequest, 12)
        assert len(answer.responses[0].partitions[0].records) > 21_000_000
        secured.wait_inside(lambda: stalled() is None, "the answer was sent")


def test_a_reader_that_goes_away_releases_the_files(secured: EncryptedServing) -> None:
    with secured.connect_encrypted() as wire:
        create_topic(wire, "gone")
        for _ in range(12):
            produce(wire, "gone", batch_of([bytes(900_000)]))
        wire.send(fetch_request("gone", partition_max_bytes=1 << 26), 12)
        wire.read_exactly(100)
    wait_for(lambda: not secured.inside(lambda: connections(secured)), "the connection is gone")


def test_one_byte_at_a_time(secured: EncryptedServing) -> None:
    wire = secured.connect()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = secured.client_context().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")

    def send() -> None:
        for byte in outgoing.read():
            wire.socket.send(bytes([byte]))

    def receive() -> None:
        incoming.write(wire.socket.recv(65536))

    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            send()
            receive()
    tls.write(request_frame(ApiVersionsRequest(), 0, 7, "x"))
    send()
    while True:
        with contextlib.suppress(ssl.SSLWantReadError):
            answer = tls.read(8)
            break
        receive()
    assert answer[4:] == b"\0\0\0\7"
    wire.socket.close()
    wait_for(lambda: not secured.inside(lambda: connections(secured)), "the connection is gone")


def test_the_broker_ends_a_connection_in_order(secured: EncryptedServing) -> None:
    """Without the end in TLS, the client could not tell it from an attacker's."""
    with secured.connect_encrypted() as wire:
        metadata(wire)
        secured.inside(lambda: [each.close("because") for each in connections(secured)])
        assert wire.socket.recv(10) == b""
    secured.expect_line("closed: because")


def test_the_client_ends_a_connection_in_order(secured: EncryptedServing) -> None:
    wire = secured.connect_encrypted()
    metadata(wire)
    assert isinstance(wire.socket, ssl.SSLSocket)
    plain = wire.socket.unwrap()
    assert plain.recv(1) == b""
    wait_for(lambda: not secured.inside(lambda: connections(secured)), "the connection is gone")


def test_a_client_that_reads_nothing_is_dropped_in_the_end(
    secured: EncryptedServing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.broker.network.tls_transport.CLOSE_S_MAX", 0.05)
    with secured.connect_encrypted() as wire:
        metadata(wire)
        answer = bytes(8 << 20)
        secured.inside(lambda: [layer_of(each).write(answer) for each in connections(secured)])
        secured.inside(lambda: [each.close("stuck") for each in connections(secured)])
        wait_for(lambda: not secured.inside(lambda: connections(secured)), "it was dropped")
    secured.expect_line("closed: stuck")


# clients that are wrong


@pytest.mark.parametrize(
    ("issued", "alert", "line"),
    [
        (None, "CERTIFICATE_REQUIRED", "the client has no certificate, and ssl.client.auth=req"),
        (Authority("stranger").issue("mallory"), "UNKNOWN_CA", "unable to get local issuer"),
        (ROOT.issue("old", days=(-9, -1)), "CERTIFICATE_EXPIRED", "certificate has expired"),
    ],
)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_wrong_certificates_get_an_alert_and_one_line(
    strict: EncryptedServing, issued: Issued | None, alert: str, line: str, version: ssl.TLSVersion
) -> None:
    context = strict.client_context(issued, minimum_version=version, maximum_version=version)
    if version == ssl.TLSVersion.TLSv1_2 and issued is None:
        alert = "HANDSHAKE_FAILURE"

    def use() -> None:
        with strict.connect_encrypted(context=context) as wire:
            wire.socket.recv(1)

    with pytest.raises(ssl.SSLError, match=alert):
        use()
    strict.expect_line(line)
    with strict.connect_encrypted(CLIENT) as wire:
        metadata(wire)


@pytest.mark.parametrize(
    ("sent", "hint"),
    [
        (
            request_frame(ApiVersionsRequest(), 3, 1, "plain"),
            "a Kafka request: the client",
        ),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "an HTTP request"),
        (b"\xff\xff\xff\xff", "first bytes ff ff ff ff"),
    ],
)
def test_plain_bytes_are_noticed_and_named(
    secured: EncryptedServing, sent: bytes, hint: str
) -> None:
    with secured.connect() as wire:
        wire.socket.sendall(sent)
        wire.expect_close()
    secured.expect_line(f"closed: not a TLS handshake ({hint}")


def test_a_broken_handshake_is_one_line(secured: EncryptedServing) -> None:
    with secured.connect() as wire:
        wire.socket.sendall(b"\x16\x03\x01\0\x10" + bytes(16))
        while wire.socket.recv(100):
            pass
    secured.expect_line("TLS handshake failed")


def test_no_version_in_common(secured: EncryptedServing) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=ROOT.pem)
    context.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")  # the broker's key is not RSA
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"):
        secured.connect_encrypted(context=context)
    secured.expect_line("TLS handshake failed: no cipher suite in common")


def test_a_client_that_rejects_the_broker_is_named(secured: EncryptedServing) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=Authority("other").pem)
    with pytest.raises(ssl.SSLCertVerificationError):
        secured.connect_encrypted(context=context)
    secured.expect_line("TLS handshake failed: the peer gave up: unknown ca")


# clients that are slow


def limit_handshakes(serving: EncryptedServing, seconds: float) -> None:
    def limit() -> None:
        for listener in serving.broker.parts.network._listeners:
            assert listener.tls is not None
            listener.tls.handshake_s_max = seconds

    serving.inside(limit)


def hello(serving: EncryptedServing) -> bytes:
    outgoing = ssl.MemoryBIO()
    tls = serving.client_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="x")
    with contextlib.suppress(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_handshake_that_stops_is_ended(tmp_path: Path, share: float) -> None:
    """Nothing, half a ClientHello, or one without what must follow."""
    with EncryptedServing(tmp_path) as serving:
        limit_handshakes(serving, 0.05)
        with serving.connect() as wire:
            first = hello(serving)
            wire.socket.sendall(first[: int(len(first) * share)])
            with contextlib.suppress(ConnectionResetError):
                while wire.socket.recv(65536):
                    pass
        serving.expect_line("TLS handshake not completed within 0.05 s")
        wait_for(lambda: not serving.inside(lambda: connections(serving)), "it is uncounted")


def test_a_connection_that_is_closed_in_a_handshake_is_no_line(tmp_path: Path) -> None:
    """Health checks connect and go."""
    with EncryptedServing(tmp_path) as serving:
        first = hello(serving)
        for size in (0, 1, 100, len(first)):
            with serving.connect() as wire:
                wire.socket.sendall(first[:size])
        wait_for(lambda: not serving.inside(lambda: connections(serving)), "all are gone")
        with serving.connect_encrypted() as wire:
            metadata(wire)


def test_silent_connections_cost_little_and_hold_up_nobody(tmp_path: Path) -> None:
    with EncryptedServing(tmp_path) as serving:
        half = hello(serving)[:100]
        silent = [serving.connect() for _ in range(300)]
        for wire in silent[::2]:
            wire.socket.sendall(half)
        with serving.connect_encrypted() as wire:
            create_topic(wire, "beside")
            for _ in range(20):
                assert produce(wire, "beside", batch_of(["x"])).error_code == 0
            assert serving.inside(lambda: len(connections(serving))) == 301
        for wire in silent:
            wire.socket.close()
        wait_for(lambda: not serving.inside(lambda: connections(serving)), "all are gone")


def test_connections_are_limited_before_their_handshake(tmp_path: Path) -> None:
    with EncryptedServing(tmp_path, {"max.connections.per.ip": 2}) as serving:
        silent = [serving.connect() for _ in range(2)]
        serving.wait_inside(lambda: len(connections(serving)) == 2, "both are counted")
        with serving.connect() as third:
            third.expect_close()
        serving.expect_line("rejected, 2 connections from 127.0.0.1")
        for wire in silent:
            wire.socket.close()
        wait_for(lambda: not serving.inside(lambda: connections(serving)), "both are gone")
        with serving.connect_encrypted() as wire:
            metadata(wire)


def test_a_crowd_of_handshakes_all_succeed(secured: EncryptedServing) -> None:
    """More than are made in one turn of the loop."""
    context = secured.client_context()
    wires: list[Wire] = []

    def connect() -> None:
        for _ in range(10):
            wires.append(secured.connect_encrypted(context=context))

    threads = [threading.Thread(target=connect) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(wires) == 80
    for wire in wires:
        assert wire.ask(ApiVersionsRequest(), 0).error_code == 0
        wire.socket.close()
    wait_for(lambda: not secured.inside(lambda: connections(secured)), "all are gone")


def test_a_layer_goes_with_its_connection(secured: EncryptedServing) -> None:
    with secured.connect_encrypted() as wire:
        metadata(wire)
    wait_for(lambda: not secured.inside(lambda: connections(secured)), "the connection is gone")

    def left() -> int:
        gc.collect()
        return sum(isinstance(each, TlsTransport) for each in gc.get_objects())

    wait_for(lambda: secured.inside(left) == 0, "no layer is kept")


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0, None])
def test_a_lost_connection_is_freed_without_the_garbage_collector(
    secured: EncryptedServing, share: float | None
) -> None:
    """Which does not see what OpenSSL holds; `None` is a client that was served from a file."""
    gc.disable()
    try:
        with secured.connect() if share is not None else secured.connect_encrypted() as wire:
            if share is None:
                create_topic(wire, "read-and-left")
                produce(wire, "read-and-left", batch_of([bytes(200_000)]))
                fetch(wire, "read-and-left")
            else:
                first = hello(secured)
                wire.socket.sendall(first[: int(len(first) * share)])
            secured.wait_inside(lambda: len(connections(secured)) == 1, "it is counted")
            held = secured.inside(lambda: references(connections(secured)))
        secured.wait_inside(lambda: not connections(secured), "it is uncounted")
        wait_for(lambda: not any(each() for each in held), "it is freed")
    finally:
        gc.enable()


def references(found: list[Connection]) -> list[weakref.ref[object]]:
    return [weakref.ref(each) for one in found for each in (one, layer_of(one))]


def test_a_broker_that_stops_ends_its_connections(tmp_path: Path) -> None:
    serving = EncryptedServing(tmp_path).start()
    wire = serving.connect_encrypted()
    metadata(wire)
    silent = serving.connect()
    serving._wires.clear()  # this test closes them itself
    serving.stop()
    with wire, silent:
        assert silent.read_exactly(1) is None
        with pytest.raises((ssl.SSLEOFError, ConnectionResetError)):
            wire.socket.recv(1)
    serving.expect_no_lines()
