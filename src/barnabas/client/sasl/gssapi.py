"""GSSAPI (RFC 4752): a Kerberos ticket for the broker, and no layer of its own on the connection.

    client  tokens of Kerberos, answered until the context is complete
    broker  its wrapped offer: layers (one of them none, 01) and a size
    client  its wrapped choice: no layer
    broker  nothing

Tickets come from a keytab, or from a cache that `kinit` has filled. Every step may wait for the
KDC: it is done in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from barnabas.client.errors import AuthenticationFailedError
from barnabas.client.sasl.kerberos_context import KerberosContext, Refused
from barnabas.model.errors import ConfigError

NO_LAYER = 1
OFFER_BYTES = 4
CHOICE = bytes([NO_LAYER, 0, 0, 0])
SERVICE = "kafka"


class Context(Protocol):
    """The client's side of one Kerberos exchange; each call may block, and raise `Refused`."""

    def step(self, token: bytes | None) -> tuple[bytes, bool]:
        """Return what to send, and whether the context is complete; None begins."""

    def wrap(self, message: bytes) -> bytes:
        """Return a message with proof of its origin."""

    def unwrap(self, message: bytes) -> bytes:
        """Return a message whose origin was proved."""


class Gssapi:
    """One login by Kerberos."""

    def __init__(self, new_context: Callable[[], Context]) -> None:
        self._new_context = new_context
        self._context: Context | None = None
        self._established = False
        self._chosen = False
        self.done = False

    async def first(self) -> bytes:
        return await self._in_thread(self._begin)

    async def next(self, challenge: bytes) -> bytes:
        if self._chosen:
            self.done = True
            return b""
        return await self._in_thread(partial(self._answer, challenge))

    def _begin(self) -> bytes:
        self._context = self._new_context()
        token, self._established = self._context.step(None)
        return token

    def _answer(self, challenge: bytes) -> bytes:
        context = self._context
        assert context is not None, "first comes before"
        if not self._established:
            token, self._established = context.step(challenge)
            return token
        offer = context.unwrap(challenge)
        if len(offer) != OFFER_BYTES or not offer[0] & NO_LAYER:
            raise Refused("the broker demands a security layer, which Kafka does not have")
        self._chosen = True
        return context.wrap(CHOICE)

    async def _in_thread(self, work: Callable[[], bytes]) -> bytes:
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work)
        except Refused as failure:
            raise AuthenticationFailedError(f"Kerberos: {failure}") from failure


def kerberos(
    jaas: Mapping[str, str], option: str, service: str | None, name: object = None
) -> Callable[[str], Context]:
    """Return what begins an exchange with a host, from the JAAS entry named `option`.

    `name` is a gssapi.Name of the brokers, which replaces service and host.
    """
    try:
        gssapi: Any = import_module("gssapi")  # not installed where types are checked
    except ImportError:
        raise ConfigError(
            "sasl.mechanism=GSSAPI: needs Kerberos; install barnabas[kerberos], or use another "
            "mechanism"
        ) from None
    return partial(
        _begin,
        gssapi,
        _store(jaas, option),
        jaas.get("principal"),
        name,
        service_name(jaas, option, service),
    )


def service_name(jaas: Mapping[str, str], option: str, service: str | None) -> str:
    """Return the service name of the brokers; raise ConfigError if it is given in two ways."""
    own = jaas.get("serviceName")
    if own and service and own != service:
        raise ConfigError(
            f"sasl.kerberos.service.name={service}: {option} has serviceName={own}; must be the "
            "same"
        )
    return own or service or SERVICE


def _store(jaas: Mapping[str, str], option: str) -> dict[str, str] | None:
    """Return where Kerberos finds the client's key or tickets; None for the environment's."""
    if _is_true(jaas, "useKeyTab"):
        if not jaas.get("keyTab") or not jaas.get("principal"):
            raise ConfigError(f"{option}: useKeyTab=true needs keyTab and principal")
        # Tickets stay in memory, and the library obtains others before they expire.
        cache = f"MEMORY:barnabas-{jaas['principal']}-{jaas['keyTab']}"
        return {"client_keytab": jaas["keyTab"], "ccache": cache}
    if jaas.get("ticketCache"):
        return {"ccache": jaas["ticketCache"]}
    return None


def _is_true(jaas: Mapping[str, str], name: str) -> bool:
    return jaas.get(name, "false").lower() == "true"


def _begin(
    library: Any,
    store: dict[str, str] | None,
    principal: str | None,
    target: Any,
    service: str,
    host: str,
) -> KerberosContext:
    kinds = library.NameType
    try:
        name = library.Name(principal, kinds.kerberos_principal) if principal else None
        credentials = library.Credentials(name=name, usage="initiate", store=store)
        target = target or library.Name(f"{service}@{host}", kinds.hostbased_service)
    except library.exceptions.GSSError as failure:
        raise Refused(str(failure)) from failure
    return KerberosContext(
        library, name=target, creds=credentials, usage="initiate", mech=library.MechType.kerberos
    )
