"""Names and versions of client software, as ApiVersions carries them since version 3."""

from __future__ import annotations

import re

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", re.ASCII)


def is_software_name(text: str) -> bool:
    """Return whether a client may give this as its software's name or version."""
    return _SOFTWARE.fullmatch(text) is not None
