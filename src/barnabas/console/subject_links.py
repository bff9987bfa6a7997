"""Where the pages have what an entry of the diary is about."""

from __future__ import annotations

from urllib.parse import urlencode

from barnabas.console.segments import segment

PAGES = {"group": "/groups/", "topic": "/topics/", "broker": "/brokers/"}


def link_of(subject: str) -> str:
    """Return the address that tells more of a subject; empty if no page does."""
    kind, colon, name = subject.partition(":")
    if colon:
        if kind == "client":
            return why("client", name)
        if kind == "transaction":
            return f"/transactions/{segment(name)}"
        return PAGES[kind] + segment(name) if kind in PAGES and name else ""
    topic, dash, number = subject.rpartition("-")
    return why("partition", subject) if dash and topic and number.isdecimal() else ""


def why(kind: str, name: str) -> str:
    """Return the address of the reasons for the state of something."""
    return f"/why?{urlencode({'of': kind, 'name': name}, errors='replace')}"
