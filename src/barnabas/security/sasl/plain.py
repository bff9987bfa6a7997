"""PLAIN (RFC 4616): name and password, which are compared with those of the JAAS entry."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest

from barnabas.security.sasl.exchange import Login, Rejected, Step, shown

USER_PREFIX = "user_"
"""Options of the JAAS entry with this prefix name the users; their values are the passwords."""

WRONG = "Authentication failed: Invalid username or password"


def plain_users(options: Mapping[str, str]) -> dict[str, str]:
    """Return the passwords of a JAAS entry, by user."""
    return {
        name.removeprefix(USER_PREFIX): password
        for name, password in options.items()
        if name.startswith(USER_PREFIX)
    }


class Plain:
    """One message, one answer."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users

    def step(self, message: bytes, now_ms: int) -> Step:
        parts = message.decode(errors="replace").split("\0", 3)
        if len(parts) != 3:
            text = f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            raise Rejected(text, text)
        authorization_id, name, password = parts
        if not name:
            text = "Authentication failed: username not specified"
            raise Rejected(text, text)
        if not password:
            text = "Authentication failed: password not specified"
            raise Rejected(text, text)
        known = self._users.get(name)
        if not _same(password, known or "") or not known:
            raise Rejected(f"unknown user or wrong password: {shown(name)}", WRONG)
        if authorization_id not in ("", name):
            text = (
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
            raise Rejected(text, text)
        return Step(b"", Login(name))


def _same(given: str, known: str) -> bool:
    """Return whether two passwords are equal, in a time that depends on neither."""
    # Digests have one length: comparing the passwords themselves would tell theirs.
    return compare_digest(sha256(given.encode()).digest(), sha256(known.encode()).digest())
