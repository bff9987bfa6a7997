"""Cipher suites by Java's names and OpenSSL's, and what a list of them makes of the versions."""

from __future__ import annotations

import ssl

import pytest

from barnabas.model.errors import ConfigError
from barnabas.tls.cipher_suites import TLS_1_3, allow_old_versions, openssl_name, select

NAMES = """
TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 ECDHE-ECDSA-AES256-GCM-SHA384
TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 ECDHE-RSA-AES256-GCM-SHA384
TLS_DHE_DSS_WITH_AES_256_GCM_SHA384 DHE-DSS-AES256-GCM-SHA384
TLS_DHE_RSA_WITH_AES_256_GCM_SHA384 DHE-RSA-AES256-GCM-SHA384
TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 ECDHE-ECDSA-CHACHA20-POLY1305
TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 ECDHE-RSA-CHACHA20-POLY1305
TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256 DHE-RSA-CHACHA20-POLY1305
TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8 ECDHE-ECDSA-AES256-CCM8
TLS_ECDHE_ECDSA_WITH_AES_256_CCM ECDHE-ECDSA-AES256-CCM
TLS_DHE_RSA_WITH_AES_256_CCM_8 DHE-RSA-AES256-CCM8
TLS_DHE_RSA_WITH_AES_256_CCM DHE-RSA-AES256-CCM
TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 ECDHE-ECDSA-AES128-GCM-SHA256
TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 ECDHE-RSA-AES128-GCM-SHA256
TLS_DHE_DSS_WITH_AES_128_GCM_SHA256 DHE-DSS-AES128-GCM-SHA256
TLS_DHE_RSA_WITH_AES_128_GCM_SHA256 DHE-RSA-AES128-GCM-SHA256
TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8 ECDHE-ECDSA-AES128-CCM8
TLS_ECDHE_ECDSA_WITH_AES_128_CCM ECDHE-ECDSA-AES128-CCM
TLS_DHE_RSA_WITH_AES_128_CCM_8 DHE-RSA-AES128-CCM8
TLS_DHE_RSA_WITH_AES_128_CCM DHE-RSA-AES128-CCM
TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384 ECDHE-ECDSA-AES256-SHA384
TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384 ECDHE-RSA-AES256-SHA384
TLS_DHE_RSA_WITH_AES_256_CBC_SHA256 DHE-RSA-AES256-SHA256
TLS_DHE_DSS_WITH_AES_256_CBC_SHA256 DHE-DSS-AES256-SHA256
TLS_ECDHE_ECDSA_WITH_CAMELLIA_256_CBC_SHA384 ECDHE-ECDSA-CAMELLIA256-SHA384
TLS_ECDHE_RSA_WITH_CAMELLIA_256_CBC_SHA384 ECDHE-RSA-CAMELLIA256-SHA384
TLS_DHE_RSA_WITH_CAMELLIA_256_CBC_SHA256 DHE-RSA-CAMELLIA256-SHA256
TLS_DHE_DSS_WITH_CAMELLIA_256_CBC_SHA256 DHE-DSS-CAMELLIA256-SHA256
TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 ECDHE-ECDSA-AES128-SHA256
TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256 ECDHE-RSA-AES128-SHA256
TLS_DHE_RSA_WITH_AES_128_CBC_SHA256 DHE-RSA-AES128-SHA256
TLS_DHE_DSS_WITH_AES_128_CBC_SHA256 DHE-DSS-AES128-SHA256
TLS_ECDHE_ECDSA_WITH_CAMELLIA_128_CBC_SHA256 ECDHE-ECDSA-CAMELLIA128-SHA256
TLS_ECDHE_RSA_WITH_CAMELLIA_128_CBC_SHA256 ECDHE-RSA-CAMELLIA128-SHA256
TLS_DHE_RSA_WITH_CAMELLIA_128_CBC_SHA256 DHE-RSA-CAMELLIA128-SHA256
TLS_DHE_DSS_WITH_CAMELLIA_128_CBC_SHA256 DHE-DSS-CAMELLIA128-SHA256
TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA ECDHE-ECDSA-AES256-SHA
TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA ECDHE-RSA-AES256-SHA
TLS_DHE_RSA_WITH_AES_256_CBC_SHA DHE-RSA-AES256-SHA
TLS_DHE_DSS_WITH_AES_256_CBC_SHA DHE-DSS-AES256-SHA
TLS_DHE_RSA_WITH_CAMELLIA_256_CBC_SHA DHE-RSA-CAMELLIA256-SHA
TLS_DHE_DSS_WITH_CAMELLIA_256_CBC_SHA DHE-DSS-CAMELLIA256-SHA
TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA ECDHE-ECDSA-AES128-SHA
TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA ECDHE-RSA-AES128-SHA
TLS_DHE_RSA_WITH_AES_128_CBC_SHA DHE-RSA-AES128-SHA
TLS_DHE_DSS_WITH_AES_128_CBC_SHA DHE-DSS-AES128-SHA
TLS_DHE_RSA_WITH_CAMELLIA_128_CBC_SHA DHE-RSA-CAMELLIA128-SHA
TLS_DHE_DSS_WITH_CAMELLIA_128_CBC_SHA DHE-DSS-CAMELLIA128-SHA
TLS_RSA_WITH_AES_256_GCM_SHA384 AES256-GCM-SHA384
TLS_RSA_WITH_AES_256_CCM_8 AES256-CCM8
TLS_RSA_WITH_AES_256_CCM AES256-CCM
TLS_RSA_WITH_AES_128_GCM_SHA256 AES128-GCM-SHA256
TLS_RSA_WITH_AES_128_CCM_8 AES128-CCM8
TLS_RSA_WITH_AES_128_CCM AES128-CCM
TLS_RSA_WITH_AES_256_CBC_SHA256 AES256-SHA256
TLS_RSA_WITH_CAMELLIA_256_CBC_SHA256 CAMELLIA256-SHA256
TLS_RSA_WITH_AES_128_CBC_SHA256 AES128-SHA256
TLS_RSA_WITH_CAMELLIA_128_CBC_SHA256 CAMELLIA128-SHA256
TLS_RSA_WITH_AES_256_CBC_SHA AES256-SHA
TLS_RSA_WITH_CAMELLIA_256_CBC_SHA CAMELLIA256-SHA
TLS_RSA_WITH_AES_128_CBC_SHA AES128-SHA
TLS_RSA_WITH_CAMELLIA_128_CBC_SHA CAMELLIA128-SHA
TLS_RSA_WITH_3DES_EDE_CBC_SHA DES-CBC3-SHA
TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA ECDHE-RSA-DES-CBC3-SHA
SSL_RSA_WITH_3DES_EDE_CBC_SHA DES-CBC3-SHA
"""
"""What `openssl ciphers -stdname` prints, without PSK, SRP, ARIA and anonymous ones; Triple DES."""

MIXED = ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES128-GCM-SHA256")


@pytest.mark.parametrize("row", NAMES.split("\n")[1:-1])
def test_java_names_become_openssl_names(row: str) -> None:
    java, openssl = row.split()
    assert openssl_name(java) == openssl
    assert openssl_name(openssl) == openssl


def chosen(*suites: str, lowest: str = "TLSv1_2", highest: str = "TLSv1_3") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion[lowest]
    context.maximum_version = ssl.TLSVersion[highest]
    select(context, suites, "ssl.cipher.suites")
    return context


def names(context: ssl.SSLContext) -> list[str]:
    return [each["name"] for each in context.get_ciphers() if each["name"] not in TLS_1_3]


def versions(context: ssl.SSLContext) -> tuple[str, str]:
    return context.minimum_version.name, context.maximum_version.name


def test_suites_of_1_2_alone_disable_1_3() -> None:
    context = chosen(*MIXED)
    assert names(context) == ["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"]
    assert versions(context) == ("TLSv1_2", "TLSv1_2")


def test_suites_of_1_3_alone_disable_1_2() -> None:
    assert versions(chosen(*TLS_1_3)) == ("TLSv1_3", "TLSv1_3")


def test_suites_of_both_leave_both() -> None:
    context = chosen(*MIXED, *TLS_1_3)
    assert versions(context) == ("TLSv1_2", "TLSv1_3")
    assert len(names(context)) == 2


def test_a_group_in_openssl_notation_leaves_both() -> None:
    context = chosen("HIGH", "!aNULL")
    assert versions(context) == ("TLSv1_2", "TLSv1_3")
    assert len(names(context)) > 5


@pytest.mark.skipif(hasattr(ssl.SSLContext, "set_ciphersuites"), reason="can be selected here")
def test_some_suites_of_1_3_cannot_be_selected() -> None:
    with pytest.raises(ConfigError, match=r"cannot select single suites of TLS 1\.3"):
        chosen(TLS_1_3[0], *MIXED)


@pytest.mark.parametrize(
    ("suites", "limits", "said"),
    [
        (MIXED, {"lowest": "TLSv1_3"}, "none is for TLS 1.3, the only version"),
        (TLS_1_3, {"highest": "TLSv1_2"}, "all are for TLS 1.3, which is disabled"),
        (("NONSENSE",), {}, r"ssl\.cipher\.suites=NONSENSE: OpenSSL does not support it"),
        ((*MIXED, "TLS_NO_WITH_NOTHING"), {}, "TLS_NO_WITH_NOTHING: OpenSSL does not support"),
    ],
)
def test_lists_that_leave_nothing_are_refused(
    suites: tuple[str, ...], limits: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        chosen(*suites, **limits)


def test_old_versions_need_a_lower_security_level() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    before = context.security_level
    allow_old_versions(context)
    assert context.security_level == before
