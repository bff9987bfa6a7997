"""A record for a topic, as producers take it, and the parsing of its fields in files."""

from __future__ import annotations

from typing import Any

from barnabas.archive.text import from_json

Headers = list[tuple[str, bytes | None]]
Row = tuple[bytes | None, bytes | None, Headers, int | None, int | None]
"""Key, value, headers, timestamp, partition; None if the file does not have it."""


def checked_number(name: str, found: Any) -> int | None:
    """Return a number of at least 0, or None; raise ValueError for anything else."""
    if found is None or found == -1:  # -1 is Kafka's value for no timestamp
        return None
    if type(found) is not int or found < 0:
        raise ValueError(f"{name}={found!r}: must be a whole number of at least 0")
    return found


def checked_headers(found: Any) -> Headers:
    """Return headers from JSON's [name, value] pairs; raise ValueError for anything else."""
    if not isinstance(found, list):
        raise ValueError(f"headers={found!r}: must be a list of [name, value]")
    headers = []
    for pair in found:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise ValueError(f"header {pair!r}: must be [name, value]")
        headers.append((pair[0], from_json(pair[1])))
    return headers
