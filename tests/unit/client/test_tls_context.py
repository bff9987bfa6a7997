"""A client's TLS context; what its options do to connections is in test_security.py."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
from tests.certificates import Authority

from barnabas.client.tls_context import tls_context
from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.security import SecurityOptions
from barnabas.model.errors import ConfigError


def context(**given: Any) -> ssl.SSLContext:
    return tls_context(parse_client_options(SecurityOptions, given))


def test_only_the_given_authority_is_trusted(tmp_path: Path) -> None:
    cafile = Authority("root").write(tmp_path / "ca.pem")
    trusting = context(ssl_cafile=str(cafile))
    assert len(trusting.get_ca_certs()) == 1
    assert trusting.check_hostname
    assert trusting.verify_mode is ssl.CERT_REQUIRED


def test_host_names_and_versions_are_as_the_options_say() -> None:
    made = context(ssl_endpoint_identification_algorithm="", ssl_enabled_protocols="TLSv1.3")
    assert not made.check_hostname
    assert made.verify_mode is ssl.CERT_REQUIRED
    assert made.minimum_version is ssl.TLSVersion.TLSv1_3


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.cafile=/absent"):
        context(ssl_cafile="/absent")
