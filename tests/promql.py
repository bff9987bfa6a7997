"""Which metrics and labels an expression of Prometheus names; enough of its grammar for that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'(?:[^'\\]|\\.)*'")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^()]*)\)")
_SELECTOR = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^{}]*\}|(?=\[)|(?![\w:]|\s*\())")
_LABEL = re.compile(r"([a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)")
_WORDS = {"and", "or", "unless", "bool", "offset", "inf", "nan"}


class Selector(NamedTuple):
    """A metric and the labels that its matchers name."""

    name: str
    labels: frozenset[str]


def selectors(expression: str) -> list[Selector]:
    """Return the selectors of an expression, without variables of Grafana."""
    return list(_selectors(_plain(expression)))


def grouping(expression: str) -> set[str]:
    """Return the labels that the expression groups by, or joins on."""
    found = _GROUPING.findall(_plain(expression, keep_grouping=True))
    return {label.strip() for labels in found for label in labels.split(",") if label.strip()}


def _plain(expression: str, *, keep_grouping: bool = False) -> str:
    text = _STRING.sub('""', expression)
    text = re.sub(r"\[[^\]]*\]", "[]", text)
    return text if keep_grouping else _GROUPING.sub(" ", text)


def _selectors(text: str) -> Iterator[Selector]:
    for match in _SELECTOR.finditer(text):
        name, matchers = match[1], match[2]
        before = text[: match.start()]
        inside = before.count("{") > before.count("}")
        if inside or name in _WORDS:
            continue
        labels = frozenset(_LABEL.findall(matchers))
        if re.fullmatch(r"[a-z]+", name) and not labels and name != "up":
            continue  # an aggregation before its grouping: sum by (…) (…)
        yield Selector(name, labels)
