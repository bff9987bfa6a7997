"""One connection as bytes: alerts, slices, the end, and the memory that stays."""

from __future__ import annotations

import ssl

import pytest
from tests.unit.tls.conversations import carry, read, shake_hands
from tests.unit.tls.test_context import UNTRUSTED, client_of, server_of

from barnabas.tls.channel import SLICE_BYTES, TlsChannel, TlsError, describe


@pytest.mark.parametrize("size", [1, 200, 16_384, 16_385, SLICE_BYTES])
def test_what_is_encrypted_is_decrypted(size: int) -> None:
    near, far = shake_hands(client_of(), server_of())
    sent = bytes(range(256)) * (size // 256) + bytes(size % 256)
    far.receive(near.encrypt(sent))
    assert read(far, size + 10) == sent
    assert read(far) == b""


def test_a_small_buffer_is_filled_again_and_again() -> None:
    near, far = shake_hands(client_of(), server_of())
    sent = bytes(50_000)
    far.receive(near.encrypt(sent))
    pieces = []
    while piece := read(far, 7000):
        pieces.append(piece)
    assert b"".join(pieces) == sent
    assert len(pieces) == 8


def test_bytes_that_arrive_one_by_one_are_put_together() -> None:
    near, far = shake_hands(client_of(), server_of())
    received = b""
    for byte in near.encrypt(b"one by one"):
        far.receive(bytes([byte]))
        received += read(far)
    assert received == b"one by one"


def test_a_handshake_in_single_bytes_succeeds() -> None:
    near = TlsChannel(client_of(), server_side=False, server_hostname="localhost")
    far = TlsChannel(server_of())
    for _ in range(10):
        near.handshake()
        for byte in near.pending_output():
            far.receive(bytes([byte]))
            done = far.handshake()
        carry(far, near)
        if done and near.established:
            break
    assert far.established
    assert near.established


def test_the_last_message_of_a_handshake_may_bring_data() -> None:
    near = TlsChannel(client_of(), server_side=False, server_hostname="localhost")
    far = TlsChannel(server_of())
    near.handshake()
    carry(near, far)
    far.handshake()
    carry(far, near)
    assert near.handshake()
    far.receive(near.encrypt(b"early"))
    assert far.handshake()
    assert read(far) == b"early"


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_the_client_gets_the_alert(version: str) -> None:
    """Else it would take the end for a lost connection, and try again."""
    near = TlsChannel(
        client_of(UNTRUSTED, protocols=(version,)), server_side=False, server_hostname="localhost"
    )
    far = TlsChannel(server_of(client_auth="required"))

    def converse() -> None:
        for _ in range(10):
            near.handshake()
            carry(near, far)
            far.handshake()
            carry(far, near)

    with pytest.raises(TlsError, match="certificate is rejected"):
        converse()
    assert carry(far, near) > 0
    with pytest.raises(TlsError, match="unknown ca"):
        _ = near.handshake() and read(near)


@pytest.mark.parametrize(
    "sent",
    [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x14\0\x12\0\0", b"\x16\x03\x01\xff\xff" + b"x" * 99],
)
def test_what_is_no_handshake_fails(sent: bytes) -> None:
    far = TlsChannel(server_of())
    far.receive(sent)
    with pytest.raises(TlsError):
        far.handshake()


def test_half_a_client_hello_waits() -> None:
    near = TlsChannel(client_of(), server_side=False, server_hostname="localhost")
    near.handshake()
    hello = near.pending_output()
    far = TlsChannel(server_of())
    far.receive(hello[: len(hello) // 2])
    assert not far.handshake()
    assert far.pending_output() == b""


def test_the_end_is_told_to_the_peer() -> None:
    near, far = shake_hands(client_of(), server_of())
    near.receive(far.encrypt(b"last") + far.close())
    assert read(near) == b"last"
    assert near.ended
    assert far.close() == b""


def test_damaged_ciphertext_is_noticed() -> None:
    near, far = shake_hands(client_of(), server_of())
    damaged = bytearray(near.encrypt(b"hello"))
    damaged[-1] ^= 1
    far.receive(bytes(damaged))
    with pytest.raises(TlsError, match="bad record mac"):
        read(far)
    assert far.pending_output()  # an alert


def test_slices_keep_the_memory_small() -> None:
    """A BIO keeps the memory of its largest content for the life of the connection."""
    near, far = shake_hands(client_of(), server_of())
    buffer = bytearray(SLICE_BYTES)
    view = memoryview(buffer)
    for _ in range(256):  # 16 MiB
        near.receive(far.encrypt(view))
        while near.read_into(view):
            pass
    assert far._outgoing.pending == near._incoming.pending == 0
    with pytest.raises(AssertionError):
        far.encrypt(bytes(SLICE_BYTES + 1))


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "the peer gave up: certificate required"),
        ("TLSV1_ALERT_UNKNOWN_CA", "the peer gave up: unknown ca"),
        ("NO_SHARED_CIPHER", "see ssl.cipher.suites"),
        ("UNSUPPORTED_PROTOCOL", "see ssl.enabled.protocols"),
        ("SOMETHING_ELSE", "something else"),
    ],
)
def test_reasons_are_in_words(reason: str, said: str) -> None:
    failure = ssl.SSLError(1, "text")
    failure.reason = reason
    assert said in describe(failure)
