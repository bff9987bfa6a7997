"""GSSAPI (RFC 4752): Kerberos tickets, and no layer of its own on the connection.

    client  tokens of Kerberos, answered until the context is complete
    broker  the wrapped offer: no layer (01), and a size
    client  its wrapped choice: no layer, a size, and a name, which is not used

Every step may wait for a disk, or for DNS: it is work for a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from barnabas.client.sasl.kerberos_context import KerberosContext, Refused
from barnabas.config.jaas import JaasEntry
from barnabas.model.errors import ConfigError, InvalidValueError
from barnabas.security.sasl.exchange import Login, Rejected, Step, Work, shown
from barnabas.security.sasl.kerberos_names import KerberosNames

OFFER = b"\x01\x01\x00\x00"
NO_LAYER = 1


class Context(Protocol):
    """The broker's side of one Kerberos exchange; each call may raise `Refused`."""

    def accept(self, token: bytes) -> tuple[bytes, bool]:
        """Return the answer to a token, and whether the context is complete."""

    def wrap(self, message: bytes) -> bytes:
        """Return a message with proof of its origin."""

    def unwrap(self, message: bytes) -> bytes:
        """Return a message whose origin was proved."""

    def names(self) -> tuple[str, str]:
        """Return the client's principal, and the default realm."""


class Gssapi:
    """One login by Kerberos."""

    def __init__(self, new_context: Callable[[], Context], names: KerberosNames) -> None:
        self._new_context = new_context
        self._names = names
        self._context: Context | None = None
        self._established = False
        self._offered = False

    def step(self, message: bytes, now_ms: int) -> Work:
        return Work(partial(self._run, message))

    def _run(self, message: bytes) -> Step:
        try:
            if self._context is None:
                self._context = self._new_context()
            if self._offered:
                return self._finish(self._context, message)
            if not self._established:
                answer, self._established = self._context.accept(message)
                # A context that is complete without an answer is followed by the offer at once.
                if answer or not self._established:
                    return Step(answer)
            self._offered = True
            return Step(self._context.wrap(OFFER))
        except Refused as failure:
            raise Rejected(f"Kerberos: {failure}") from None

    def _finish(self, context: Context, message: bytes) -> Step:
        choice = context.unwrap(message)
        if len(choice) < len(OFFER) or choice[0] != NO_LAYER:
            raise Rejected("client chose a security layer, which was not offered")
        principal, default_realm = context.names()
        try:
            name = self._names.short_name(principal, default_realm)
        except InvalidValueError as failure:
            raise Rejected(str(failure)) from None
        if not name:
            raise Rejected(f"principal {shown(principal)} has no name")
        return Step(None, Login(name))


def kerberos(entry: JaasEntry | None, listener: str) -> Callable[[], Context]:
    """Return what begins an exchange, from a JAAS entry's keyTab and principal."""
    try:
        gssapi: Any = import_module("gssapi")  # not installed where types are checked
    except ImportError:
        raise ConfigError(
            f"sasl.enabled.mechanisms=GSSAPI: listener {listener} needs Kerberos; install "
            "barnabas[kerberos], or enable other mechanisms"
        ) from None
    options = entry.options if entry is not None else {}
    if "keyTab" not in options or "principal" not in options:
        raise ConfigError(
            f"sasl.enabled.mechanisms=GSSAPI: needs keyTab and principal in "
            f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config"
        )
    try:
        name = gssapi.Name(options["principal"], gssapi.NameType.kerberos_principal)
        credentials = gssapi.Credentials(
            name=name, usage="accept", store={"keytab": options["keyTab"]}
        )
    except gssapi.exceptions.GSSError as failure:
        raise ConfigError(
            f"listener.name.{listener.lower()}.gssapi.sasl.jaas.config: no key of "
            f"{options['principal']} in {options['keyTab']}: {failure}"
        ) from None
    return partial(_KerberosContext, gssapi, credentials)


class _KerberosContext(KerberosContext):
    """The broker's side, which also knows names."""

    def __init__(self, library: Any, credentials: Any) -> None:
        super().__init__(library, creds=credentials, usage="accept")
        self._library = library

    def accept(self, token: bytes) -> tuple[bytes, bool]:
        return self.step(token)

    def names(self) -> tuple[str, str]:
        try:
            library = self._library
            anybody = library.Name("x", library.NameType.user)
            default = str(anybody.canonicalize(library.MechType.kerberos))
            return str(self.context.initiator_name), default.rpartition("@")[2]
        except self.error as failure:
            raise Refused(str(failure)) from failure
