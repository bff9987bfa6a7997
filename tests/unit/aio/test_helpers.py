"""The helper for TLS that aiokafka has: whom it trusts, and what it shows."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from barnabas.aio.helpers import create_ssl_context

AUTHORITY = trustme.CA()


def test_an_authority_that_is_given_is_trusted() -> None:
    pem = AUTHORITY.cert_pem.bytes()
    context = create_ssl_context(cadata=pem.decode())
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    [trusted] = context.get_ca_certs(binary_form=True)
    assert trusted == ssl.PEM_cert_to_DER_cert(pem.decode())


def test_a_certificate_is_loaded_with_its_key(tmp_path: Path) -> None:
    issued = AUTHORITY.issue_cert("client.example.org")
    certificate, key = tmp_path / "me.pem", tmp_path / "me.key"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    create_ssl_context(certfile=certificate, keyfile=key)
    with pytest.raises(ssl.SSLError):
        create_ssl_context(certfile=certificate)  # which does not contain the key
