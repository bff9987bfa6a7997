"""aiokafka's helper for TLS, for programs that import it; the options `ssl_*` do the same."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from os import PathLike

Path = str | bytes | PathLike[str] | PathLike[bytes]


def create_ssl_context(
    *,
    cafile: Path | None = None,
    capath: Path | None = None,
    cadata: str | bytes | None = None,
    certfile: Path | None = None,
    keyfile: Path | None = None,
    password: Callable[[], str | bytes | bytearray] | str | bytes | bytearray | None = None,
) -> ssl.SSLContext:
    """Return a context that trusts these authorities (the system's if none is given).

    With `certfile` (and `keyfile`, if it does not contain the key) clients authenticate with it.

        context = create_ssl_context(cafile="ca.pem", certfile="me.pem", keyfile="me.key")
        AIOKafkaProducer(security_protocol="SSL", ssl_context=context, **options)
    """
    context = ssl.create_default_context(cafile=cafile, capath=capath, cadata=cadata)
    if certfile is not None:
        context.load_cert_chain(certfile, keyfile, password)
    return context
