"""Subjects as Java writes them; each expectation was printed by Java's X500Principal."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from barnabas.tls.certificate import MalformedCertificate
from barnabas.tls.distinguished_name import distinguished_name

CN, OU, ORG, C = (
    NameOID.COMMON_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.COUNTRY_NAME,
)


def written(*attributes: tuple[x509.ObjectIdentifier, str]) -> str:
    """Return the name of these attributes, most general first, as certificates have them."""
    name = x509.Name([x509.NameAttribute(*each) for each in attributes])
    return distinguished_name(name.public_bytes())


def test_relative_names_are_in_reverse_order() -> None:
    everything = [
        (C, "US"),
        (NameOID.STATE_OR_PROVINCE_NAME, "CA"),
        (NameOID.LOCALITY_NAME, "SF"),
        (ORG, "Acme"),
        (OU, "eng"),
        (CN, "kafka1"),
    ]
    assert written(*everything) == "CN=kafka1,OU=eng,O=Acme,L=SF,ST=CA,C=US"


def test_nine_attributes_have_names() -> None:
    others = [
        (NameOID.DOMAIN_COMPONENT, "org"),
        (NameOID.STREET_ADDRESS, "Main"),
        (NameOID.USER_ID, "u1"),
    ]
    assert written(*others) == "UID=u1,STREET=Main,DC=org"


def test_other_attributes_are_numbers_and_bytes() -> None:
    assert written((NameOID.EMAIL_ADDRESS, "a@b.c")) == "1.2.840.113549.1.9.1=#16056140622e63"
    assert written((NameOID.SERIAL_NUMBER, "42")) == "2.5.4.5=#13023432"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain name", "CN=plain name"),
        ("#hash=eq", r"CN=\#hash\=eq"),
        (',=+<>#;"\\', r"CN=\,\=\+\<\>\#\;\"\\"),
        (" lead#trail ", r"CN=\ lead\#trail\ "),
        ("  two  ", r"CN=\ \ two\ \ "),
        ("   ", r"CN=\ \ \ "),
        ("nul\0nul", r"CN=nul\00nul"),
        ("Zürich 東京", "CN=Zürich 東京"),
        ("tab\there", "CN=tab\there"),
    ],
)
def test_what_is_escaped(value: str, shown: str) -> None:
    assert written((CN, value)) == shown


def test_several_attributes_in_one_relative_name() -> None:
    attributes = [x509.NameAttribute(CN, "a"), x509.NameAttribute(OU, "b")]
    name = x509.Name(
        [
            x509.RelativeDistinguishedName([x509.NameAttribute(C, "US")]),
            x509.RelativeDistinguishedName(attributes),
        ]
    )
    assert distinguished_name(name.public_bytes()) == "CN=a+OU=b,C=US"


def test_strings_of_two_bytes_are_read_as_bytes() -> None:
    attribute = x509.NameAttribute(CN, "bmp", _type=_ASN1Type.BMPString)
    assert distinguished_name(x509.Name([attribute]).public_bytes()) == r"CN=\00b\00m\00p"


def test_values_that_are_no_strings_are_bytes() -> None:
    # CN (2.5.4.3) with the integer 5.
    encoded = bytes.fromhex("300c310a30080603550403020105")
    assert distinguished_name(encoded) == "CN=#020105"


def test_no_subject_is_an_empty_name() -> None:
    assert written() == ""


@pytest.mark.parametrize("encoded", ["", "30", "3003310130", "300a310830060600 0c0141", "0101ff"])
def test_what_is_no_name_is_malformed(encoded: str) -> None:
    with pytest.raises(MalformedCertificate):
        distinguished_name(bytes.fromhex(encoded))
