"""The subject of a certificate as Java writes it: the name of the client, which ACLs refer to.

    CN=kafka1,OU=eng,O=Acme,L=SF,ST=CA,C=US

This is RFC 2253 in the form of `X500Principal.getName()`: relative names in reverse order, only
nine attributes by their keywords, others as `OID=#hex`, and its own rules about backslashes. Other
libraries differ in all of these.
"""

from __future__ import annotations

from barnabas.tls.certificate import Element, MalformedCertificate, elements

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.9": "STREET",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
_STRINGS = {0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E}
"""UTF8String, PrintableString, T61String, IA5String, GeneralString and BMPString."""
_ESCAPED = frozenset(',=+<>#;"\\')
_SPACES = " \r"


def distinguished_name(subject: bytes) -> str:
    """Return an encoded name as a string; raise MalformedCertificate if it is not one."""
    try:
        (name,) = elements(subject)
        relative = [
            "+".join(_attribute(attribute) for attribute in each.elements())
            for each in name.elements()
        ]
    except (IndexError, ValueError) as failure:
        raise MalformedCertificate("its subject is not a name") from failure
    return ",".join(reversed(relative))


def _attribute(attribute: Element) -> str:
    kind, value = attribute.elements()
    oid = _dotted(kind.content)
    keyword = _KEYWORDS.get(oid)
    if keyword is None or value.tag not in _STRINGS:
        return f"{keyword or oid}=#{value.encoded.hex()}"
    # Java reads every kind of string as UTF-8, also those that are not.
    return f"{keyword}={_escaped(value.content.decode('utf-8', 'replace'))}"


def _dotted(content: bytes) -> str:
    numbers: list[int] = []
    number = 0
    for octet in content:
        number = number << 7 | octet & 0x7F
        if not octet & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, [first, numbers[0] - 40 * first, *numbers[1:]]))


def _escaped(value: str) -> str:
    body = value.strip(_SPACES)
    lead = len(value) - len(value.lstrip(_SPACES))
    trail = len(value) - lead - len(body)
    escaped = "".join(
        f"\\{each}" if each in _ESCAPED else "\\00" if each == "\0" else each for each in body
    )
    before = "".join(f"\\{each}" for each in value[:lead])
    after = "".join(f"\\{each}" for each in value[len(value) - trail :]) if trail else ""
    return before + escaped + after
