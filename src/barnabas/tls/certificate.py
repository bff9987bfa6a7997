"""What the broker reads from a certificate that OpenSSL has verified: names and validity.

A reader for the few fields that are needed, so that TLS works without a further library. Layout
(RFC 5280), each element a tag, a length and its content:

    Certificate = SEQUENCE { TBSCertificate, … }
    TBSCertificate = SEQUENCE { [0] version?, serial, algorithm, issuer, validity, subject,
                                public key, [1]?, [2]?, [3] extensions? }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

SEQUENCE, SET, OID, OCTET_STRING, BOOLEAN = 0x30, 0x31, 0x06, 0x04, 0x01
UTC_TIME = 0x17
VERSION, EXTENSIONS = 0xA0, 0xA3
SUBJECT_ALTERNATIVE_NAME = bytes.fromhex("0603551d11")


class MalformedCertificate(ValueError):
    """Bytes that are not a certificate."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes
    encoded: bytes

    def elements(self) -> Iterator[Element]:
        """Yield the elements inside of this one."""
        return elements(self.content)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The fields of a certificate; names are encoded."""

    issuer: bytes
    subject: bytes
    valid_from: str
    valid_until: str
    """Both as YYYYMMDDhhmmssZ, which can be compared as they are."""
    alternative_names: frozenset[bytes]

    @property
    def is_self_issued(self) -> bool:
        """Whether it is its own issuer, as the certificate of a root CA."""
        return self.issuer == self.subject

    def is_valid_at(self, moment: datetime) -> bool:
        """Return whether a moment (in UTC) is within the certificate's validity."""
        return self.valid_from <= moment.strftime("%Y%m%d%H%M%SZ") <= self.valid_until


def elements(data: bytes) -> Iterator[Element]:
    """Yield the elements that follow each other in `data`."""
    position = 0
    while position < len(data):
        element = _element(data, position)
        yield element
        position += len(element.encoded)


def read_certificate(der: bytes) -> Certificate:
    """Return the fields of a certificate; raise MalformedCertificate if there are none."""
    try:
        (certificate,) = elements(der)
        fields = list(next(certificate.elements()).elements())
        if fields[0].tag == VERSION:
            del fields[0]
        _, _, issuer, validity, subject = fields[:5]
        valid_from, valid_until = (_time(each) for each in validity.elements())
        extensions = [field for field in fields[5:] if field.tag == EXTENSIONS]
        names = _alternative_names(extensions[0]) if extensions else frozenset()
    except (IndexError, StopIteration, ValueError) as failure:
        raise MalformedCertificate("not an X.509 certificate") from failure
    return Certificate(issuer.encoded, subject.encoded, valid_from, valid_until, names)


def _element(data: bytes, position: int) -> Element:
    start = position
    if position + 2 > len(data):
        raise MalformedCertificate("cut off")
    tag, size = data[position], data[position + 1]
    position += 2
    if size & 0x80:
        octets = size & 0x7F
        if not 1 <= octets <= 4 or position + octets > len(data):
            raise MalformedCertificate("unsupported length")
        size = int.from_bytes(data[position : position + octets], "big")
        position += octets
    end = position + size
    if end > len(data):
        raise MalformedCertificate("cut off")
    return Element(tag, data[position:end], data[start:end])


def _time(element: Element) -> str:
    written = element.content.decode("ascii")
    if element.tag == UTC_TIME:  # two digits of the year: 1950 to 2049
        return ("19" if written >= "5" else "20") + written
    return written


def _alternative_names(extensions: Element) -> frozenset[bytes]:
    (listed,) = extensions.elements()
    for extension in listed.elements():
        name, *_, value = extension.elements()
        if name.encoded == SUBJECT_ALTERNATIVE_NAME:
            (names,) = elements(value.content)
            return frozenset(each.encoded for each in names.elements())
    return frozenset()
