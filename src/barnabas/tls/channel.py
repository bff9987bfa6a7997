"""One TLS connection as bytes: what arrives goes in, what must be sent comes out. No socket.

    channel.receive(ciphertext)
    channel.handshake()          # until it returns True; `pending_output` after each step
    channel.read_into(view)      # decrypted bytes
    channel.encrypt(data)        # bytes for the peer, at most SLICE_BYTES at a time

A memory BIO never shrinks. So it is given and drained in slices, and stays as small as they are.
"""

from __future__ import annotations

import contextlib
import ssl
from typing import cast

SLICE_BYTES = 64 * 1024
"""The most that is encrypted at a time."""
RECEIVE_SLICE_BYTES = 32 * 1024
"""The most ciphertext that should be received before it is read."""

HANDSHAKE_RECORD = 0x16
"""The first byte of every TLS connection."""


class TlsError(Exception):
    """The peer, or what it sent, is rejected; the message says why."""


class TlsChannel:
    """One side of a TLS connection."""

    __slots__ = ("_incoming", "_outgoing", "_tls", "ended", "established")

    def __init__(
        self,
        context: ssl.SSLContext,
        *,
        server_side: bool = True,
        server_hostname: str | None = None,
    ) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_side, server_hostname=server_hostname
        )
        self.established = False
        """Whether the handshake is complete."""
        self.ended = False
        """Whether the peer has closed its side in order."""

    @property
    def is_resumed(self) -> bool:
        """Whether the handshake resumed an earlier session, and so checked no certificate."""
        return bool(self._tls.session_reused)

    @property
    def peer_certificate(self) -> bytes | None:
        """Return the peer's certificate (DER), if it has shown one."""
        return self._tls.getpeercert(binary_form=True)

    def description(self) -> str:
        """Return version and cipher, for logs."""
        cipher = self._tls.cipher()
        return f"{self._tls.version()} {cipher[0] if cipher else ''}"

    def receive(self, data: bytes | memoryview) -> None:
        """Take ciphertext from the peer."""
        self._incoming.write(data)

    def handshake(self) -> bool:
        """Continue the handshake with what has arrived; return whether it is complete."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as failure:
            raise TlsError(describe(failure)) from failure
        self.established = True
        return True

    def pending_output(self) -> bytes:
        """Return what must be sent to the peer: handshake messages, an alert, or ciphertext."""
        return self._outgoing.read() if self._outgoing.pending else b""

    def read_into(self, view: memoryview) -> int:
        """Decrypt what has arrived into `view`, as far as there is room; return how much it was."""
        incoming, tls = self._incoming, self._tls
        filled, room = 0, len(view)
        # Asking first saves an exception, which would cost more than the check.
        while filled < room and (incoming.pending or tls.pending()):
            try:
                # With a buffer it returns a count, which its stub does not know.
                count = cast(int, tls.read(room - filled, view[filled:]))
            except ssl.SSLWantReadError:  # a part of a record
                break
            except ssl.SSLZeroReturnError:
                self.ended = True
                break
            except ssl.SSLError as failure:
                raise TlsError(describe(failure)) from failure
            if not count:
                self.ended = True
                break
            filled += count
        return filled

    def encrypt(self, data: bytes | bytearray | memoryview) -> bytes:
        """Return the ciphertext of at most SLICE_BYTES, and what else is to be sent."""
        assert len(data) <= SLICE_BYTES, len(data)
        self._tls.write(data)
        return self._outgoing.read()

    def close(self) -> bytes:
        """End our side in order; return what must be sent for that."""
        # Usually the peer's own end is outstanding, and nobody waits for it.
        with contextlib.suppress(ssl.SSLError):
            self._tls.unwrap()
        return self.pending_output()


def describe(failure: ssl.SSLError) -> str:
    """Return in words why a handshake failed."""
    if isinstance(failure, ssl.SSLCertVerificationError):
        return f"the peer's certificate is rejected: {failure.verify_message}"
    reason = failure.reason or str(failure)
    words = str(reason).lower().replace("_", " ")
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "the client has no certificate, and ssl.client.auth=required"
    if "ALERT" in str(reason):
        _, _, alert = words.partition("alert ")
        return f"the peer gave up: {alert}"
    if reason == "NO_SHARED_CIPHER":
        return "no cipher suite in common: see ssl.cipher.suites"
    if reason in ("UNSUPPORTED_PROTOCOL", "VERSION_TOO_LOW"):
        return "no TLS version in common: see ssl.enabled.protocols"
    return words
