"""The language of filters: its syntax tree, parser and printer.

    "out of stock"                      text in key, value or headers, in any case
    key = order-17                      the whole key
    value contains refund               part of the text; letters count as they are
    value.items[0].price >= 9.90        a JSON path; numbers are exact
    headers.trace-id ~ "^00-"           a regular expression (RE2's)
    timestamp > 2026-11-18T12:00:00Z    times in ISO, or milliseconds since 1970
    timestamp > -15m                    15 minutes ago; s, m, h, d
    partition in (0, 3) and offset < 1000
    value.error exists and not (headers["x y"] exists)

Operators are = != < <= > >= ~ contains, in, exists; `and`, `or`, `not` and parentheses combine
them, and two conditions next to each other mean `and`. `a != b` is `not a = b`, so it also holds
where there is no `a`. A filter is never code: it is a tree of the few nodes below, bounded in size
and depth, and what evaluates it can do nothing but compare.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final, TypeAlias

LENGTH_MAX: Final = 4000
NODES_MAX: Final = 500
DEPTH_MAX: Final = 40
PATTERN_MAX: Final = 1000

Step: TypeAlias = str | int
"""A step of a JSON path: the name of a member, or the index of an element."""

SIDES: Final = ("key", "value")
NUMBERS: Final = ("partition", "offset", "size")
FIELDS: Final = (*SIDES, "headers", *NUMBERS, "timestamp")
KEYWORDS: Final = ("and", "or", "not", "in", "contains", "exists")
SYMBOLS: Final = ("=", "!=", "<", "<=", ">", ">=", "~")


class FilterError(ValueError):
    """A filter that cannot be read, with the place where reading failed."""

    def __init__(self, reason: str, text: str, position: int) -> None:
        super().__init__(f"{reason} (at character {position + 1})")
        self.reason = reason
        self.text = text
        self.position = position

    @property
    def pointer(self) -> tuple[str, str]:
        """A part of the filter, and a line below it that points at the place."""
        start = max(0, self.position - 40)
        part = self.text[start : self.position + 40].replace("\n", " ").replace("\t", " ")
        return part, " " * (self.position - start) + "^"


@dataclass(frozen=True, slots=True)
class Number:
    """A number, as it was written: `1.50` stays exact."""

    text: str

    @property
    def value(self) -> int | Decimal:
        return exact_number(self.text)


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    text: str


@dataclass(frozen=True, slots=True)
class Constant:
    """`true`, `false` or `null`."""

    value: bool | None


Literal: TypeAlias = Number | Text | Constant


@dataclass(frozen=True, slots=True)
class Field:
    """What is looked at: a field of the record, and the path to a part of it."""

    name: str
    path: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Search:
    """Text anywhere in a record, in upper or lower case."""

    text: str
    position: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """One field compared with one literal; `operator` is a symbol or `contains`."""

    field: Field
    operator: str
    literal: Literal
    position: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Among:
    """One field that equals any of several literals."""

    field: Field
    literals: tuple[Literal, ...]
    position: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Exists:
    """One field that is there; a null of JSON is there, a null key or value is not."""

    field: Field
    position: int = dataclasses.field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    operand: Filter


@dataclass(frozen=True, slots=True)
class And:
    """All of them; two or more."""

    operands: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any of them; two or more."""

    operands: tuple[Filter, ...]


Filter: TypeAlias = Search | Compare | Among | Exists | Not | And | Or

# These patterns are ours, and none of them can backtrack; what users write goes to RE2.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_SPACE = re.compile(r"[ \t\r\n]+")
_SYMBOL = re.compile(r"!=|<=|>=|==|[=<>~(),\[\]]")
_WORD = re.compile(r"[^\s()=!<>~,\"'\[\]]+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_INDEX = re.compile(r"[0-9]{1,9}")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_DIGITS_MAX = 400


def is_number(text: str) -> bool:
    """Return whether a string is a number that `exact_number` reads."""
    return len(text) <= _DIGITS_MAX and _NUMBER.fullmatch(text) is not None


def exact_number(text: str) -> int | Decimal:
    """Return the exact number that a string of `is_number` writes."""
    try:
        return int(text)
    except ValueError:
        return Decimal(text)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # "word", "text", "symbol", "end"
    text: str
    position: int
    end: int


def parse(text: str) -> Filter | None:
    """Return the tree of a filter, None for an empty one; raise FilterError for a wrong one."""
    if len(text) > LENGTH_MAX:
        reason = f"a filter of {len(text)} characters: must be at most {LENGTH_MAX}"
        raise FilterError(reason, text, LENGTH_MAX)
    half = _SURROGATE.search(text)
    if half is not None:
        raise FilterError("half of a surrogate pair", text, half.start())
    parser = _Parser(text)
    if parser.token.kind == "end":
        return None
    found = parser.alternatives(0)
    if parser.token.kind != "end":
        raise parser.error(f"did not expect {_shown(parser.token)}")
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._nodes = 0
        self.token = self._read(0)

    def error(self, reason: str, position: int | None = None) -> FilterError:
        return FilterError(
            reason, self._text, self.token.position if position is None else position
        )

    def alternatives(self, depth: int) -> Filter:
        if depth > DEPTH_MAX:
            raise self.error(f"nested deeper than {DEPTH_MAX} levels")
        found = [self._conditions(depth)]
        while self._takes_word("or"):
            found.append(self._conditions(depth))
        return found[0] if len(found) == 1 else Or(tuple(found))

    def _conditions(self, depth: int) -> Filter:
        found = [self._negation(depth)]
        while True:
            if self._takes_word("and") or self._begins_condition():
                found.append(self._negation(depth))
            else:
                return found[0] if len(found) == 1 else And(tuple(found))

    def _begins_condition(self) -> bool:
        token = self.token
        if token.kind == "symbol":
            return token.text == "("
        return token.kind == "text" or (token.kind == "word" and token.text.lower() != "or")

    def _negation(self, depth: int) -> Filter:
        if self._takes_word("not"):
            self._count()
            if depth > DEPTH_MAX:
                raise self.error(f"nested deeper than {DEPTH_MAX} levels")
            return Not(self._negation(depth + 1))
        if self._takes_symbol("("):
            found = self.alternatives(depth + 1)
            if not self._takes_symbol(")"):
                raise self.error(f"expected ) but got {_shown(self.token)}")
            return found
        return self._condition()

    def _condition(self) -> Filter:
        self._count()
        token = self.token
        position = token.position
        if token.kind == "text":
            self._advance()
            return Search(self._searched(token), position)
        if token.kind != "word":
            raise self.error(f"expected a condition but got {_shown(token)}")
        if token.text.lower() in KEYWORDS:
            raise self.error(f"expected a condition but got the word {token.text}; quote it")
        name = token.text.partition(".")[0]
        if name not in FIELDS:
            self._advance()
            if self._at_operator():
                known = ", ".join(FIELDS)
                raise self.error(f"unknown field {token.text}: must begin with {known}", position)
            return Search(self._searched(token), position)
        found = self._field()
        return self._compared(found, position)

    def _searched(self, token: _Token) -> str:
        if not token.text:
            raise self.error("text to search for must not be empty", token.position)
        return token.text

    def _compared(self, found: Field, position: int) -> Filter:
        token = self.token
        word = token.text.lower() if token.kind == "word" else ""
        if word == "exists":
            self._advance()
            return Exists(found, position)
        if word == "in":
            self._advance()
            return Among(found, self._literals(found), position)
        if word == "contains":
            self._advance()
            if found.name in (*NUMBERS, "timestamp"):
                raise self.error(f"{found.name} is a number, which cannot contain", position)
            return Compare(found, "contains", self._literal(found), position)
        if token.kind != "symbol" or token.text not in (*SYMBOLS, "=="):
            must = f"{' '.join(SYMBOLS)} contains, in or exists"
            raise self.error(f"expected {must} but got {_shown(token)}")
        self._advance()
        operator = "=" if token.text == "==" else token.text
        if operator == "~":
            if found.name in (*NUMBERS, "timestamp"):
                raise self.error(f"{found.name} is a number, which cannot match ~", position)
            return Compare(found, "~", self._pattern(), position)
        at = self.token.position
        literal = self._literal(found)
        if isinstance(literal, Constant) and operator not in ("=", "!="):
            raise self.error(f"{print_literal(literal)} has no order: must be = or !=", at)
        return Compare(found, operator, literal, position)

    def _pattern(self) -> Text:
        token = self.token
        if token.kind not in ("text", "word"):
            raise self.error(f"expected a regular expression but got {_shown(token)}")
        self._advance()
        try:
            compile_pattern(token.text)
        except ValueError as failure:
            raise self.error(str(failure), token.position) from None
        return Text(token.text)

    def _literals(self, found: Field) -> tuple[Literal, ...]:
        if not self._takes_symbol("("):
            raise self.error(f"expected ( after in but got {_shown(self.token)}")
        literals = [self._literal(found)]
        while self._takes_symbol(","):
            self._count()
            literals.append(self._literal(found))
        if not self._takes_symbol(")"):
            raise self.error(f"expected , or ) but got {_shown(self.token)}")
        return tuple(literals)

    def _literal(self, found: Field) -> Literal:
        token = self.token
        if token.kind not in ("text", "word"):
            raise self.error(f"expected a value but got {_shown(token)}")
        self._advance()
        literal: Literal = Text(token.text)
        if token.kind == "word":
            literal = _word_literal(token.text)
        if found.name in NUMBERS and not isinstance(literal, Number):
            raise self.error(f"{found.name} must be compared with a number", token.position)
        if found.name == "timestamp" and not is_moment(literal):
            must = "a time such as 2026-11-18T12:00:00Z, milliseconds since 1970, or -15m"
            raise self.error(f"timestamp must be compared with {must}", token.position)
        return literal

    def _field(self) -> Field:
        """Read a field: a word, and brackets that follow it without a space."""
        token = self.token
        at = token.position
        name, dot, rest = token.text.partition(".")
        path: list[Step] = []
        position = at + len(name)
        while dot:
            matched = _NAME.match(rest)
            if matched is None:
                raise self.error(
                    'a name must follow the dot; other names go in brackets: value["a b"]',
                    position + 1,
                )
            path.append(matched.group())
            position += 1 + matched.end()
            rest = rest[matched.end() :]
            if rest and not rest.startswith("."):
                raise self.error('this name must go in brackets: value["a b"]', position)
            dot, rest = rest[:1], rest[1:]
        position = token.end
        while self._text[position : position + 1] == "[":
            position, step = self._step(position + 1)
            path.append(step)
            while self._text[position : position + 1] == ".":
                matched = _NAME.match(self._text, position + 1)
                if matched is None:
                    raise self.error("a name must follow the dot", position + 1)
                path.append(matched.group())
                position = matched.end()
        if name == "headers" and (not path or not isinstance(path[0], str)):
            raise self.error("headers needs a name: headers.NAME", at)
        if path and name not in (*SIDES, "headers"):
            raise self.error(f"{name} is a number and has no parts", at)
        if len(path) > DEPTH_MAX:
            raise self.error(f"a path of more than {DEPTH_MAX} steps", at)
        self.token = self._read(position)
        return Field(name, tuple(path))

    def _step(self, position: int) -> tuple[int, Step]:
        step: Step
        quoted = _QUOTED.match(self._text, position)
        index = _INDEX.match(self._text, position)
        if quoted is not None:
            step, position = self._unquoted(quoted), quoted.end()
        elif index is not None:
            step, position = int(index.group()), index.end()
        else:
            raise self.error("brackets need a number or a quoted name", position)
        if self._text[position : position + 1] != "]":
            raise self.error("expected ]", position)
        return position + 1, step

    def _at_operator(self) -> bool:
        token = self.token
        if token.kind == "symbol":
            return token.text in (*SYMBOLS, "==", "[")
        return token.kind == "word" and token.text.lower() in ("in", "contains", "exists")

    def _count(self) -> None:
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise self.error(f"more than {NODES_MAX} conditions")

    def _takes_word(self, word: str) -> bool:
        if self.token.kind == "word" and self.token.text.lower() == word:
            self._advance()
            return True
        return False

    def _takes_symbol(self, symbol: str) -> bool:
        if self.token.kind == "symbol" and self.token.text == symbol:
            self._advance()
            return True
        return False

    def _advance(self) -> None:
        self.token = self._read(self.token.end)

    def _read(self, position: int) -> _Token:
        text = self._text
        space = _SPACE.match(text, position)
        if space is not None:
            position = space.end()
        if position >= len(text):
            return _Token("end", "", position, position)
        if text[position] in "\"'":
            quoted = _QUOTED.match(text, position)
            if quoted is None:
                raise FilterError("the quotation mark is not closed", text, position)
            return _Token("text", self._unquoted(quoted), position, quoted.end())
        found = _SYMBOL.match(text, position)
        if found is not None:
            return _Token("symbol", found.group(), position, found.end())
        found = _WORD.match(text, position)
        if found is not None:
            return _Token("word", found.group(), position, found.end())
        raise FilterError(f"did not expect {text[position]!r}", text, position)

    def _unquoted(self, quoted: re.Match[str]) -> str:
        found = _ESCAPE.sub(_meaning, quoted.group()[1:-1])
        # Two escapes may be the halves of one character.
        try:
            return found.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            reason = "half of a surrogate pair"
            raise FilterError(reason, self._text, quoted.start()) from None


def _word_literal(word: str) -> Literal:
    if is_number(word):
        return Number(word)
    constants = {"true": True, "false": False, "null": None}
    if word in constants:
        return Constant(constants[word])
    return Text(word)


def _meaning(found: re.Match[str]) -> str:
    escape = found.group(1)
    if len(escape) == 5:
        return chr(int(escape[1:], 16))
    return _ESCAPES.get(escape, escape)


def _shown(token: _Token) -> str:
    return "the end" if token.kind == "end" else repr(token.text[:40])


_QUOTED_CHARACTERS = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}


def print_text(text: str) -> str:
    """Return a string in quotation marks."""
    return '"' + "".join(_QUOTED_CHARACTERS.get(each, each) for each in text) + '"'


def print_literal(literal: Literal) -> str:
    """Return a literal as the parser reads it."""
    if isinstance(literal, Number):
        return literal.text
    if isinstance(literal, Text):
        return print_text(literal.text)
    return {True: "true", False: "false", None: "null"}[literal.value]


def print_field(found: Field) -> str:
    """Return a field as the parser reads it."""
    steps = []
    for step in found.path:
        if isinstance(step, str) and _NAME.fullmatch(step):
            steps.append(f".{step}")
        else:
            steps.append(f"[{step}]" if isinstance(step, int) else f"[{print_text(step)}]")
    return found.name + "".join(steps)


def print_filter(tree: Filter) -> str:
    """Return a filter as text; parsing it gives the same tree."""
    match tree:
        case Search(text):
            return print_text(text)
        case Compare(found, operator, literal):
            return f"{print_field(found)} {operator} {print_literal(literal)}"
        case Among(found, literals):
            return f"{print_field(found)} in ({', '.join(map(print_literal, literals))})"
        case Exists(found):
            return f"{print_field(found)} exists"
        case Not(operand):
            return f"not {_grouped(operand)}"
        case And(operands):
            return " and ".join(map(_grouped, operands))
        case Or(operands):
            return " or ".join(map(_grouped, operands))


def _grouped(tree: Filter) -> str:
    printed = print_filter(tree)
    return f"({printed})" if isinstance(tree, And | Or) else printed


_AGO = re.compile(r"-([0-9]{1,9})([smhd])")
_AGO_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def is_moment(literal: Literal) -> bool:
    """Return whether a literal is a time."""
    try:
        moment_ms(literal, 0)
    except ValueError:
        return False
    return True


def moment_ms(literal: Literal, now_ms: int) -> int:
    """Return a literal as milliseconds since 1970; raise ValueError if it is not a time."""
    if isinstance(literal, Number):
        value = literal.value
        if not isinstance(value, int):
            raise ValueError(f"{literal.text} must be whole milliseconds")
        return value
    if isinstance(literal, Text):
        ago = _AGO.fullmatch(literal.text)
        if ago is not None:
            return now_ms - int(ago.group(1)) * _AGO_MS[ago.group(2)]
        found = iso_ms(literal.text)
        if found is not None:
            return found
    raise ValueError("not a time")


_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)


def iso_ms(text: str) -> int | None:
    """Return an ISO time as milliseconds since 1970, without a zone in UTC; None for others."""
    if len(text) > 40 or _ISO.fullmatch(text) is None:
        return None
    try:
        found = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    try:
        since = found - datetime(1970, 1, 1, tzinfo=UTC)
    except OverflowError:
        return None
    return since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000


def compile_pattern(text: str, *, ignore_case: bool = False, literal: bool = False) -> Pattern:
    """Compile a user's regular expression with RE2; raise ValueError with the reason."""
    import re2  # only needed for searches

    if len(text) > PATTERN_MAX and not literal:
        raise ValueError(f"a pattern of {len(text)} characters: must be at most {PATTERN_MAX}")
    options = re2.Options()
    options.log_errors = False
    options.dot_nl = True
    options.case_sensitive = not ignore_case
    options.literal = literal
    options.max_mem = 1 << 22
    try:
        return Pattern(re2.compile(text.encode(), options))
    except re2.error as failure:
        reason = failure.args[0] if failure.args else failure
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise ValueError(f"not a regular expression: {reason}") from None
    except UnicodeEncodeError:
        raise ValueError("not a regular expression: half of a surrogate pair") from None


class Pattern:
    """A compiled pattern, which searches bytes in linear time."""

    __slots__ = ("_search",)

    def __init__(self, compiled: Any) -> None:
        self._search: Callable[[bytes], object | None] = compiled.search

    def found_in(self, data: bytes) -> bool:
        """Return whether it matches anywhere."""
        return self._search(data) is not None
