"""Cipher suites by Java's names and by OpenSSL's.

Python can choose the suites of TLS 1.2 only; those of TLS 1.3 are all enabled or, with a maximum
version, none. So a list without 1.3 suites disables TLS 1.3, one with nothing else disables
TLS 1.2, and one with a part of the 1.3 suites is rejected where Python cannot select them (below
3.15).
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable

from barnabas.model.errors import ConfigError

TLS_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""The suites of TLS 1.3 that OpenSSL enables."""


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite for TLS 1.2 and below; its own names stay as they are.

    TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 is ECDHE-RSA-AES256-GCM-SHA384 there.
    """
    exchange, separator, cipher = suite.partition("_WITH_")
    if not separator:
        return suite
    exchange = exchange.removeprefix("TLS_").removeprefix("SSL_").replace("_", "-")
    if cipher.startswith("3DES_EDE_CBC"):
        cipher = cipher.replace("3DES_EDE_CBC", "DES-CBC3")
    for name in ("AES", "CAMELLIA", "ARIA"):
        cipher = cipher.replace(f"{name}_", name)
    cipher = cipher.replace("_CBC", "").replace("_", "-")
    if cipher.startswith("CHACHA20-POLY1305"):
        cipher = "CHACHA20-POLY1305"
    return cipher if exchange == "RSA" else f"{exchange}-{cipher}"


def select(context: ssl.SSLContext, suites: Iterable[str], option: str) -> None:
    """Allow these suites alone, in a context whose versions are set."""
    listed = list(suites)
    modern = [suite for suite in listed if suite in TLS_1_3]
    older = [openssl_name(suite) for suite in listed if suite not in TLS_1_3]
    for given, name in zip((s for s in listed if s not in TLS_1_3), older, strict=True):
        _check(given, name, option)
    if older:
        context.set_ciphers(":".join([*older, *_security_level(context)]))
    if not modern:
        _limit(context, option, listed, highest=ssl.TLSVersion.TLSv1_2)
    elif set(modern) != set(TLS_1_3):
        choose = getattr(context, "set_ciphersuites", None)
        if choose is None:
            raise ConfigError(
                f"{option}={','.join(listed)}: this Python cannot select single suites of TLS 1.3; "
                f"list all of them ({', '.join(TLS_1_3)}) or none"
            )
        choose(":".join(modern))
    if not older:
        _limit(context, option, listed, lowest=ssl.TLSVersion.TLSv1_3)


def _security_level(context: ssl.SSLContext) -> list[str]:
    """Return what old versions of TLS need in a list of ciphers: they use SHA-1 in signatures."""
    oldest = context.minimum_version
    return ["@SECLEVEL=0"] if oldest < ssl.TLSVersion.TLSv1_2 else []


def allow_old_versions(context: ssl.SSLContext) -> None:
    """Enable the default suites for TLS 1.0 and 1.1, if the context has these versions."""
    if _security_level(context):
        context.set_ciphers("DEFAULT:@SECLEVEL=0")


def _check(given: str, name: str, option: str) -> None:
    try:
        # An expression of OpenSSL's may well be meant: the option may have its notation.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(name)
    except ssl.SSLError:
        raise ConfigError(f"{option}={given}: OpenSSL does not support it") from None


def _limit(
    context: ssl.SSLContext,
    option: str,
    listed: list[str],
    *,
    lowest: ssl.TLSVersion = ssl.TLSVersion.MINIMUM_SUPPORTED,
    highest: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED,
) -> None:
    """Leave only the versions that the suites are for."""
    if highest == ssl.TLSVersion.TLSv1_2 and context.minimum_version == ssl.TLSVersion.TLSv1_3:
        raise ConfigError(f"{option}={','.join(listed)}: none is for TLS 1.3, the only version")
    if lowest == ssl.TLSVersion.TLSv1_3 and context.maximum_version == ssl.TLSVersion.TLSv1_2:
        raise ConfigError(f"{option}={','.join(listed)}: all are for TLS 1.3, which is disabled")
    if highest == ssl.TLSVersion.TLSv1_2:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    if lowest == ssl.TLSVersion.TLSv1_3:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
