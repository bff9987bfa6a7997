"""PEM: blocks of base64 between BEGIN and END lines, also where line breaks became spaces."""

from __future__ import annotations

import base64
import binascii
import re
from typing import NamedTuple

_BLOCK = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----(?P<body>.*?)-----END (?P=label)-----", re.S
)

CERTIFICATE_LABELS = ("CERTIFICATE", "X509 CERTIFICATE")


class Block(NamedTuple):
    """One block; `body` may begin with headers (an old form of encryption)."""

    label: str
    body: str

    @property
    def is_certificate(self) -> bool:
        return self.label in CERTIFICATE_LABELS

    @property
    def is_key(self) -> bool:
        return self.label.endswith("PRIVATE KEY")

    @property
    def is_encrypted(self) -> bool:
        """Whether it is a key that needs a password."""
        return self.label.startswith("ENCRYPTED") or "ENCRYPTED" in self.body

    def der(self) -> bytes:
        """Return the bytes; raise ValueError if they are not base64."""
        try:
            return base64.b64decode("".join(self.body.split()), validate=True)
        except binascii.Error as failure:
            raise ValueError(f"a {self.label} block is not base64") from failure

    def text(self) -> str:
        """Return the block as OpenSSL reads it."""
        if ":" in self.body:  # headers are lines
            return (
                f"-----BEGIN {self.label}-----\n{self.body.strip()}\n-----END {self.label}-----\n"
            )
        return armour(self.label, self.der())


def blocks(text: str) -> list[Block]:
    """Return the blocks in `text`, in their order; what is between them is ignored."""
    return [Block(match["label"], match["body"]) for match in _BLOCK.finditer(text)]


def armour(label: str, der: bytes) -> str:
    """Return bytes as a block."""
    body = base64.encodebytes(der).decode("ascii")
    return f"-----BEGIN {label}-----\n{body}-----END {label}-----\n"
