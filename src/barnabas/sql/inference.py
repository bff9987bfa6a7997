"""The columns of JSON values, inferred from a sample of them.

Numbers without a fraction are BIGINT, with one DOUBLE; a field with values of different types is
STRING and has its JSON. Fields may be missing in some values: they are null there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_INT64 = range(-(2**63), 2**63)

NULL, BOOLEAN, BIGINT, DOUBLE, STRING, MIXED = (
    "NULL",
    "BOOLEAN",
    "BIGINT",
    "DOUBLE",
    "STRING",
    "MIXED",
)


@dataclass(frozen=True, slots=True)
class Fields:
    """An object: its fields in the order of their first appearance."""

    kinds: dict[str, Kind]


@dataclass(frozen=True, slots=True)
class Items:
    """A list of values of one kind."""

    kind: Kind


Kind = str | Fields | Items
"""One of the constants above, an object, or a list."""


def infer(texts: Iterable[bytes]) -> Fields | None:
    """Return the fields of values; None unless all of them are JSON objects, and not all empty."""
    kind: Kind = NULL
    for text in texts:
        try:
            value = json.loads(text)
        except ValueError:  # UnicodeDecodeError is one, too
            return None
        if not isinstance(value, dict):
            return None
        kind = _merged(kind, _fields(value))
    if not isinstance(kind, Fields) or not kind.kinds:
        return None
    return Fields({name: _settled(each) for name, each in kind.kinds.items()})


def to_ddl(fields: Fields) -> str:
    """Return the columns in Spark's DDL."""
    return ", ".join(f"{_name(name)} {_word(kind)}" for name, kind in fields.kinds.items())


def has_mixed(kind: Kind) -> bool:
    """Return whether some field has values of several kinds, which Arrow's parser rejects."""
    if isinstance(kind, Fields):
        return any(map(has_mixed, kind.kinds.values()))
    return has_mixed(kind.kind) if isinstance(kind, Items) else kind == MIXED


def fit(value: Any, kind: Kind) -> Any:
    """Return a JSON value converted to its kind; raise ValueError if it is something else."""
    if value is None:
        return None
    if kind in (MIXED, NULL):  # a field that was null in the whole sample may be anything
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if isinstance(kind, Fields):
        if isinstance(value, dict):
            return {name: fit(value.get(name), each) for name, each in kind.kinds.items()}
    elif isinstance(kind, Items):
        if isinstance(value, list):
            return [fit(each, kind.kind) for each in value]
    elif _merged(_kind(value), kind) == kind:
        return float(value) if kind == DOUBLE else value
    raise ValueError(f"{json.dumps(value)[:40]} is not {_word(kind)}")


def _kind(value: Any) -> Kind:
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return BIGINT if value in _INT64 else DOUBLE
    if isinstance(value, float):
        return DOUBLE
    if isinstance(value, str):
        return STRING
    if isinstance(value, dict):
        return _fields(value)
    kind: Kind = NULL
    for each in value:
        kind = _merged(kind, _kind(each))
    return Items(kind)


def _fields(value: dict[str, Any]) -> Fields:
    return Fields({name: _kind(each) for name, each in value.items()})


def _settled(kind: Kind) -> Kind:
    """Turn objects that cannot be columns into strings: without fields, or with Id beside id."""
    if isinstance(kind, Items):
        return Items(_settled(kind.kind))
    if not isinstance(kind, Fields):
        return kind
    if not kind.kinds or len({name.lower() for name in kind.kinds}) < len(kind.kinds):
        return MIXED
    return Fields({name: _settled(each) for name, each in kind.kinds.items()})


def _merged(one: Kind, other: Kind) -> Kind:
    """Return the kind that accepts values of both."""
    if one == other or other == NULL:
        return one
    if one == NULL:
        return other
    if isinstance(one, Fields) and isinstance(other, Fields):
        names = dict.fromkeys([*one.kinds, *other.kinds])
        return Fields(
            {
                name: _merged(one.kinds.get(name, NULL), other.kinds.get(name, NULL))
                for name in names
            }
        )
    if isinstance(one, Items) and isinstance(other, Items):
        return Items(_merged(one.kind, other.kind))
    return DOUBLE if {_word(one), _word(other)} == {BIGINT, DOUBLE} else MIXED


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _word(kind: Kind) -> str:
    if isinstance(kind, Fields):
        inner = ", ".join(f"{_name(name)}: {_word(each)}" for name, each in kind.kinds.items())
        return f"STRUCT<{inner}>"
    if isinstance(kind, Items):
        return f"ARRAY<{_word(kind.kind)}>"
    return STRING if kind in (NULL, MIXED) else kind
