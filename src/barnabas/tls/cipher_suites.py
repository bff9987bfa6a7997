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
_MODIFIERS = ("!", "-", "+", "@")
"""What begins a part of OpenSSL's notation that enables nothing by itself."""


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
    cipher = cipher.replace("_CBC", "").replace("CCM_8", "CCM8").replace("_", "-")
    if cipher.startswith("CHACHA20-POLY1305"):
        cipher = "CHACHA20-POLY1305"
    return cipher if exchange == "RSA" else f"{exchange}-{cipher}"


def select(context: ssl.SSLContext, suites: Iterable[str], option: str) -> None:
    """Allow these suites alone, in a context whose versions are set."""
    listed = list(suites)
    modern = [suite for suite in listed if suite in TLS_1_3]
    older = [suite for suite in listed if suite not in TLS_1_3]
    if older:
        _check(older, option)
        names = [openssl_name(suite) for suite in older]
        context.set_ciphers(":".join([*names, *_security_level(context)]))
    if modern and set(modern) != set(TLS_1_3):
        choose = getattr(context, "set_ciphersuites", None)
        if choose is None:
            raise ConfigError(
                f"{option}={','.join(listed)}: this Python cannot select single suites of TLS 1.3; "
                f"list all of them ({', '.join(TLS_1_3)}) or none"
            )
        choose(":".join(modern))
    if not older:
        _only_modern(context, option, listed)
    elif not modern and all(map(_is_suite, older)):
        _only_older(context, option, listed)


def _security_level(context: ssl.SSLContext) -> list[str]:
    """Return what old versions of TLS need in a list of ciphers: they use SHA-1 in signatures."""
    oldest = context.minimum_version
    return ["@SECLEVEL=0"] if oldest < ssl.TLSVersion.TLSv1_2 else []


def allow_old_versions(context: ssl.SSLContext) -> None:
    """Enable the default suites for TLS 1.0 and 1.1, if the context has these versions."""
    if _security_level(context):
        context.set_ciphers("DEFAULT:@SECLEVEL=0")


def _check(suites: list[str], option: str) -> None:
    """Raise ConfigError for a suite that OpenSSL does not know, which it would ignore."""
    for suite in suites:
        if suite[:1] not in _MODIFIERS and not _enabled_by(openssl_name(suite)):
            raise ConfigError(f"{option}={suite}: OpenSSL does not support it")


def _is_suite(name: str) -> bool:
    """Return whether this is one suite, not a group of them in OpenSSL's notation (`HIGH`)."""
    return _enabled_by(openssl_name(name)) == [openssl_name(name)]


def _enabled_by(expression: str) -> list[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.set_ciphers(f"{expression}:@SECLEVEL=0")
    except ssl.SSLError:
        return []
    return [each["name"] for each in context.get_ciphers() if each["name"] not in TLS_1_3]


def _only_modern(context: ssl.SSLContext, option: str, listed: list[str]) -> None:
    if context.maximum_version < ssl.TLSVersion.TLSv1_3:
        raise ConfigError(f"{option}={','.join(listed)}: all are for TLS 1.3, which is disabled")
    context.minimum_version = ssl.TLSVersion.TLSv1_3


def _only_older(context: ssl.SSLContext, option: str, listed: list[str]) -> None:
    if context.minimum_version > ssl.TLSVersion.TLSv1_2:
        raise ConfigError(f"{option}={','.join(listed)}: none is for TLS 1.3, the only version")
    context.maximum_version = min(context.maximum_version, ssl.TLSVersion.TLSv1_2)
