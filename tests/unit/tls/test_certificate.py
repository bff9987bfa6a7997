"""The fields of a certificate that are read without a library."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.certificates import HOSTS, Authority

from barnabas.tls.certificate import MalformedCertificate, read_certificate


def test_names_are_those_of_the_certificate() -> None:
    authority = Authority("the root")
    issued = authority.issue("the leaf")
    leaf = read_certificate(issued.chain[0])
    root = read_certificate(authority.der)
    assert leaf.subject == issued.certificate.subject.public_bytes()
    assert leaf.issuer == root.subject == authority.name.public_bytes()
    assert root.is_self_issued
    assert not leaf.is_self_issued


def test_alternative_names_can_be_compared() -> None:
    authority = Authority()
    both = read_certificate(authority.issue("a").chain[0]).alternative_names
    one = read_certificate(authority.issue("a", hosts=HOSTS[:1]).chain[0]).alternative_names
    none = read_certificate(authority.issue("a", hosts=()).chain[0]).alternative_names
    assert len(both) == len(HOSTS)
    assert one < both
    assert none == frozenset()


@pytest.mark.parametrize("until_days", [365, 365 * 40])
def test_validity_is_read_in_both_forms(until_days: int) -> None:
    """Until 2049 the year has two digits, later it has four."""
    issued = Authority().issue("a", days=(-1, until_days))
    read = read_certificate(issued.chain[0])
    now = datetime.now(UTC)
    assert read.is_valid_at(now)
    assert read.is_valid_at(now + timedelta(days=until_days - 1))
    assert not read.is_valid_at(now - timedelta(days=2))
    assert not read.is_valid_at(now + timedelta(days=until_days + 1))


def test_what_is_cut_off_or_no_certificate_is_malformed() -> None:
    der = Authority().issue("a").chain[0]
    for data in (b"", b"0", b"\x30\x03abc", b"\x30\x80", der[:-1], der[:200], der + b"\0", b"text"):
        with pytest.raises(MalformedCertificate):
            read_certificate(data)
    assert read_certificate(der).subject
