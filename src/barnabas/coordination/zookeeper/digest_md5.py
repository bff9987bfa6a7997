"""SASL DIGEST-MD5 (RFC 2831) as ZooKeeper speaks it: one login, the client's side.

    login = DigestMd5("kafka", "secret", nonce)
    answer = login.answer(challenge)     # to be sent to the server
    login.check(proof)                   # of its response: it knows the password, too

The password is not sent, but an eavesdropper can try passwords on it as fast as MD5 is: that
is what TLS is for. The mechanism is obsolete elsewhere; it is the one with passwords that ZooKeeper
has.
"""

from __future__ import annotations

import hashlib
import hmac
import re

SERVICE = "zookeeper/zk-sasl-md5"
"""The name under which ZooKeeper's servers log clients in, whatever their hosts are called."""

_COUNT = "00000001"
_PAIR = re.compile(r'\s*([^\s=,]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*))\s*(?:,|$)', re.DOTALL)


class DigestMd5Error(Exception):
    """The server's messages are not those of a server that knows the password."""


class DigestMd5:
    """One login; `nonce` must be new, and unknown to others before."""

    def __init__(self, user: str, password: str, nonce: str, service: str = SERVICE) -> None:
        self._service = service
        self._user = user
        self._password = password
        self._nonce = nonce
        self._expected = b""

    def answer(self, challenge: bytes) -> bytes:
        """Return the answer to the server's challenge; raise DigestMd5Error if it is none."""
        offered = _pairs(challenge)
        theirs = offered.get("nonce")
        if not theirs or offered.get("algorithm") != "md5-sess":
            raise DigestMd5Error("sent a challenge that is not one of DIGEST-MD5")
        if "auth" not in [word.strip() for word in offered.get("qop", "auth").split(",")]:
            raise DigestMd5Error(f"demands qop={offered['qop']}; only auth is supported")
        realm = offered.get("realm", "")
        encoding = "utf-8" if offered.get("charset") == "utf-8" else "latin-1"
        secret = _md5(b":".join(map(_narrow, (self._user, realm, self._password))))
        session = _md5(secret + f":{theirs}:{self._nonce}".encode(encoding)).hex()

        def response(purpose: str) -> str:
            what = _md5(f"{purpose}:{self._service}".encode()).hex()
            parts = (session, theirs, _COUNT, self._nonce, "auth", what)
            return _md5(":".join(parts).encode(encoding)).hex()

        self._expected = response("").encode()
        said = {
            "username": _quoted(self._user),
            "realm": _quoted(realm),
            "nonce": _quoted(theirs),
            "nc": _COUNT,
            "cnonce": _quoted(self._nonce),
            "digest-uri": _quoted(self._service),
            "maxbuf": "65536",
            "response": response("AUTHENTICATE"),
            "qop": "auth",
        }
        if encoding == "utf-8":
            said["charset"] = encoding
        try:
            return ",".join(f"{name}={value}" for name, value in said.items()).encode(encoding)
        except UnicodeEncodeError:
            raise DigestMd5Error("accepts only names in ISO 8859-1") from None

    def check(self, proof: bytes) -> None:
        """Raise DigestMd5Error unless the server has proved that it knows the password."""
        shown = _pairs(proof).get("rspauth", "").encode()
        if not self._expected or not hmac.compare_digest(shown, self._expected):
            raise DigestMd5Error("did not prove that it knows the password")


def _pairs(message: bytes) -> dict[str, str]:
    """Return names and values; of a name that is there twice (realms), the first value."""
    found: dict[str, str] = {}
    for name, quoted, plain in _PAIR.findall(message.decode("utf-8", "replace")):
        found.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) if quoted else plain)
    return found


def _quoted(value: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


def _narrow(value: str) -> bytes:
    """Encode a part of the secret: in ISO 8859-1 where that is possible, whatever the charset."""
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode()


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()
