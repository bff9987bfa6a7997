"""Filters at work: a tree becomes a function of a record, and bounds that spare most records.

The function is built of small closures once, because it runs for millions of records. Nothing that
a filter says can loop: texts are searched by RE2 or as a whole, paths are walked step by step, and
documents are parsed once per record, within the limits of `json_text`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import floor
from typing import Any, Final, Protocol, TypeAlias

from barnabas.console.records.filter_language import (
    Among,
    And,
    Compare,
    Constant,
    Exists,
    Field,
    Filter,
    Literal,
    Not,
    Number,
    Or,
    Search,
    Step,
    Text,
    compile_pattern,
    exact_number,
    is_number,
    iso_ms,
    moment_ms,
)
from barnabas.console.records.json_text import NotJsonError, parse_json, write_json


class _Missing:
    """Means that a record does not have a field."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()


class Candidate(Protocol):
    """A record as filters see it; documents are decoded when a filter first asks."""

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def document(self, side: str) -> Any:
        """Return the decoded key or value, MISSING if it has no parts to look into."""

    def text(self, side: str) -> str | None:
        """Return the decoded key or value as text; None if it is null."""

    def translation(self, side: str) -> str | None:
        """Return the text if it was decoded from bytes that do not have it; else None."""


Test: TypeAlias = Callable[[Candidate], bool]
_Get: TypeAlias = Callable[[Candidate], Any]

_SECONDS_BELOW: Final = 100_000_000_000
"""Times in documents that are less than this are taken for seconds; as milliseconds they would be
before March 1973."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """What is true of every record that a filter lets pass; it need not be looked for elsewhere."""

    partitions: frozenset[int] | None = None
    offset_min: int = 0
    offset_max: int = 2**63 - 1
    timestamp_min: int = -(2**63)
    timestamp_max: int = 2**63 - 1
    needle: Needle | None = None


@dataclass(frozen=True, slots=True)
class Needle:
    """What is somewhere in the bytes of a record that passes."""

    text: str
    ignore_case: bool = False
    escapable: bool = False
    """Whether a document could have it in escape sequences instead."""

    def finder(self) -> Callable[[bytes], bool]:
        """Return a function that says if bytes of many records may have one that passes."""
        data = self.text.encode(errors="surrogatepass")
        if self.ignore_case:
            return compile_pattern(self.text, ignore_case=True, literal=True).found_in
        if self.escapable:
            slash = b"\\/" if b"/" in data else b"\\u"
            return lambda chunk: data in chunk or b"\\u" in chunk or slash in chunk
        return lambda chunk: data in chunk


ALL: Final = Pruning()


def compile_filter(tree: Filter | None, now_ms: int) -> Test | None:
    """Return a function that says if a record passes; None if all do."""
    return None if tree is None else _test(tree, now_ms)


def _test(tree: Filter, now_ms: int) -> Test:
    match tree:
        case Search(text):
            return _search(text)
        case Compare(found, symbol, literal):
            return _compare(found, symbol, literal, now_ms)
        case Among(found, literals):
            tests = [_compare(found, "=", each, now_ms) for each in literals]
            return lambda record: any(test(record) for test in tests)
        case Exists(found):
            get = _getter(found)
            if found.path:
                return lambda record: get(record) is not MISSING
            return lambda record: get(record) is not None
        case Not(operand):
            inner = _test(operand, now_ms)
            return lambda record: not inner(record)
        case And(operands):
            # What is cheap goes first.
            tests = [_test(each, now_ms) for each in sorted(operands, key=_cost)]
            return lambda record: all(test(record) for test in tests)
        case Or(operands):
            tests = [_test(each, now_ms) for each in sorted(operands, key=_cost)]
            return lambda record: any(test(record) for test in tests)


def _cost(tree: Filter) -> int:
    match tree:
        case Search():
            return 2
        case Not(operand):
            return _cost(operand)
        case And(operands) | Or(operands):
            return max(map(_cost, operands))
        case Compare(found) | Among(found) | Exists(found):
            if found.name in ("key", "value"):
                return 3 if found.path else 1
            return 1 if found.name == "headers" else 0


def _search(text: str) -> Test:
    pattern = compile_pattern(text, ignore_case=True, literal=True).found_in

    def test(record: Candidate) -> bool:
        if record.value is not None and pattern(record.value):
            return True
        if record.key is not None and pattern(record.key):
            return True
        for name, content in record.headers:
            if pattern(name.encode(errors="surrogatepass")):
                return True
            if content is not None and pattern(content):
                return True
        # What a decoder makes of bytes may have text that the bytes do not.
        for side in ("key", "value"):
            shown = record.translation(side)
            if shown is not None and pattern(shown.encode(errors="surrogatepass")):
                return True
        return False

    return test


def _getter(found: Field) -> _Get:
    name, path = found.name, found.path
    if name in ("partition", "offset", "timestamp"):
        return operator.attrgetter(name)
    if name == "size":
        return lambda record: len(record.key or b"") + len(record.value or b"")
    if name == "headers":
        return _header_getter(str(path[0]), path[1:])
    if path:
        return lambda record: _walk(record.document(name), path)
    return lambda record: record.text(name)


def _header_getter(wanted: str, path: tuple[Step, ...]) -> _Get:
    def get(record: Candidate) -> Any:
        # As in Kafka's lastHeader: of headers with one name the last one counts.
        for name, content in reversed(record.headers):
            if name == wanted:
                found = None if content is None else content.decode(errors="replace")
                return _walk(_parsed(found), path) if path else found
        return MISSING

    return get


def _parsed(text: str | None) -> Any:
    try:
        return MISSING if text is None else parse_json(text)
    except NotJsonError:
        return MISSING


def _walk(document: Any, path: Sequence[Step]) -> Any:
    for step in path:
        if isinstance(document, dict):
            document = document.get(step, MISSING) if isinstance(step, str) else MISSING
        elif isinstance(document, list) and isinstance(step, int):
            document = document[step] if step < len(document) else MISSING
        else:
            return MISSING
    return document


_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _compare(found: Field, symbol: str, literal: Literal, now_ms: int) -> Test:
    get = _getter(found)
    if symbol == "!=":
        same = _compare(found, "=", literal, now_ms)
        return lambda record: not same(record)
    if symbol == "~":
        assert isinstance(literal, Text)
        matches = compile_pattern(literal.text).found_in
        return _on_text(get, lambda text: matches(text.encode(errors="surrogatepass")))
    if symbol == "contains":
        return _contains(get, literal)
    if found.name in ("partition", "offset", "size", "timestamp"):
        number: int | Decimal
        if found.name == "timestamp":
            number = moment_ms(literal, now_ms)
        else:
            assert isinstance(literal, Number)
            number = literal.value
        order: Callable[[Any, Any], bool] = operator.eq if symbol == "=" else _ORDERS[symbol]
        return lambda record: order(get(record), number)
    test = _equals(literal) if symbol == "=" else _ordered(_ORDERS[symbol], literal)
    if found.name in ("key", "value") and not found.path:
        return _whole(found.name, test, literal)
    return lambda record: test(get(record))


def _whole(side: str, test: Callable[[Any], bool], literal: Literal) -> Test:
    """Compare a whole key or value: its text as it is, or the scalar that its JSON is."""
    if isinstance(literal, Constant) and literal.value is None:
        return lambda record: record.text(side) is None

    def compared(record: Candidate) -> bool:
        text = record.text(side)
        if text is None:
            return False
        if test(text):
            return True
        found = record.document(side)
        return (not isinstance(found, dict | list | str) and test(found)) or (
            isinstance(found, str) and found != text and test(found)
        )

    return compared


def _on_text(get: _Get, test: Callable[[str], bool]) -> Test:
    def on_text(record: Candidate) -> bool:
        text = _text_of(get(record))
        return text is not None and test(text)

    return on_text


def _text_of(found: Any) -> str | None:
    if isinstance(found, str):
        return found
    if found is MISSING or found is None:
        return None
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, dict | list):
        try:
            return write_json(found)
        except ValueError:
            return None
    return str(found)


def _contains(get: _Get, literal: Literal) -> Test:
    part = _literal_text(literal)
    equal = _equals(literal)

    def test(record: Candidate) -> bool:
        found = get(record)
        if isinstance(found, list):
            return any(map(equal, found))
        if isinstance(found, dict):
            return part in found
        text = _text_of(found)
        return text is not None and part in text

    return test


def _literal_text(literal: Literal) -> str:
    if isinstance(literal, Constant):
        return {True: "true", False: "false", None: "null"}[literal.value]
    return literal.text


def _equals(literal: Literal) -> Callable[[Any], bool]:
    if isinstance(literal, Constant):
        constant = literal.value
        if constant is None:
            return lambda found: found is None
        word = "true" if constant else "false"
        return lambda found: found is constant or found == word
    if isinstance(literal, Number):
        number, written = literal.value, literal.text
        return lambda found: (
            found == written
            if isinstance(found, str) and not is_number(found)
            else (number_of := _number_of(found)) is not None and number_of == number
        )
    text = literal.text
    moment = iso_ms(text)

    def test(found: Any) -> bool:
        if isinstance(found, str):
            return found == text or (moment is not None and iso_ms(found) == moment)
        if found is MISSING or found is None or isinstance(found, dict | list):
            return False
        return _text_of(found) == text or (moment is not None and _moment_of(found) == moment)

    return test


def _ordered(order: Callable[[Any, Any], bool], literal: Literal) -> Callable[[Any], bool]:
    if isinstance(literal, Number):
        number = literal.value

        def test_number(found: Any) -> bool:
            value = _number_of(found)
            return value is not None and order(value, number)

        return test_number
    assert isinstance(literal, Text)
    text = literal.text
    moment = iso_ms(text)

    def test_text(found: Any) -> bool:
        if moment is not None:
            when = _moment_of(found)
            return when is not None and order(when, moment)
        return isinstance(found, str) and order(found, text)

    return test_text


def _number_of(found: Any) -> int | Decimal | None:
    """Return an exact number, also from text that is one."""
    if isinstance(found, bool):
        return None
    if isinstance(found, int):
        return found
    if isinstance(found, Decimal):
        return found if found.is_finite() else None
    if isinstance(found, float):
        return Decimal(repr(found)) if found - found == 0 else None
    if isinstance(found, str):
        stripped = found.strip() if len(found) < 500 else found
        return exact_number(stripped) if is_number(stripped) else None
    return None


def _moment_of(found: Any) -> int | Decimal | None:
    """Return a time in a document as milliseconds since 1970."""
    if isinstance(found, str):
        moment = iso_ms(found)
        if moment is not None:
            return moment
    number = _number_of(found)
    if number is None:
        return None
    return number * 1000 if -_SECONDS_BELOW < number < _SECONDS_BELOW else number


def prune(tree: Filter | None, now_ms: int) -> Pruning:
    """Return what all records have in common that a filter lets pass."""
    if tree is None:
        return ALL
    found = ALL
    for each in tree.operands if isinstance(tree, And) else (tree,):
        found = _both(found, _pruned(each, now_ms))
    return found


def _pruned(tree: Filter, now_ms: int) -> Pruning:
    match tree:
        case And():
            return prune(tree, now_ms)
        case Or(operands):
            parts = [_pruned(each, now_ms) for each in operands]
            chosen = [part.partitions for part in parts]
            return Pruning(
                partitions=frozenset().union(*(each for each in chosen if each is not None))
                if None not in chosen
                else None,
                offset_min=min(part.offset_min for part in parts),
                offset_max=max(part.offset_max for part in parts),
                timestamp_min=min(part.timestamp_min for part in parts),
                timestamp_max=max(part.timestamp_max for part in parts),
            )
        case Compare(Field("partition"), "=", Number() as literal):
            return Pruning(partitions=_integers([literal]))
        case Among(Field("partition"), literals):
            return Pruning(partitions=_integers(literals))
        case Compare(Field("offset"), symbol, Number() as literal):
            low, high = _range(symbol, literal.value)
            return Pruning(offset_min=max(low, 0), offset_max=high)
        case Compare(Field("timestamp"), symbol, literal):
            low, high = _range(symbol, moment_ms(literal, now_ms))
            return Pruning(timestamp_min=low, timestamp_max=high)
        case Compare(Field("key" | "value" | "headers"), "=" | "contains", Text(text)):
            return Pruning(needle=_needle(text))
        case Search(text):
            return Pruning(needle=Needle(text, ignore_case=True))
        case _:
            return ALL


def _integers(literals: Sequence[Literal]) -> frozenset[int]:
    values = [literal.value for literal in literals if isinstance(literal, Number)]
    return frozenset(int(value) for value in values if value == int(value))


_NUMERIC: Final = frozenset("0123456789abcdefABCDEF+-. ")
_SYNTAX: Final = frozenset('\\":,[]{}\ufffd')


def _needle(text: str) -> Needle | None:
    """Return what must be in the bytes; None if decoders may make it of other bytes.

    They write numbers, bytes in hexadecimal digits, constants, and the syntax of JSON.
    """
    if not _NUMERIC.issuperset(text) and not any(
        character in _SYNTAX or character < " " for character in text
    ):
        constants = ("true", "false", "null", "inf", "Infinity", "nan", "NaN")
        if not any(text in word or word in text for word in constants) and iso_ms(text) is None:
            return Needle(text, escapable=True)
    return None


def _range(symbol: str, value: int | Decimal) -> tuple[int, int]:
    """Return the whole numbers for which a comparison holds; all of them for `!=`."""
    lowest, highest = -(2**63), 2**63 - 1
    if not lowest <= value <= highest:
        return lowest, highest
    below = floor(value)
    exact = below == value
    match symbol:
        case "=":
            return (below, below) if exact else (1, 0)
        case "<":
            return lowest, below - 1 if exact else below
        case "<=":
            return lowest, below
        case ">":
            return below + 1, highest
        case ">=":
            return below if exact else below + 1, highest
        case _:
            return lowest, highest


def _both(one: Pruning, other: Pruning) -> Pruning:
    partitions = one.partitions
    if other.partitions is not None:
        partitions = other.partitions if partitions is None else partitions & other.partitions
    needles = [each for each in (one.needle, other.needle) if each is not None]
    return Pruning(
        partitions=partitions,
        offset_min=max(one.offset_min, other.offset_min),
        offset_max=min(one.offset_max, other.offset_max),
        timestamp_min=max(one.timestamp_min, other.timestamp_min),
        timestamp_max=min(one.timestamp_max, other.timestamp_max),
        needle=max(needles, key=lambda each: len(each.text), default=None),
    )
