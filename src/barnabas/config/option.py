"""Options, declared once: a declaration gives the attribute, its parsing, bounds and documentation.

    class StorageOptions(Section):
        log_segment_bytes: int = option(
            "log.segment.bytes", "int", default=1_073_741_824, at_least=14, dynamic="cluster",
            doc="Size at which a segment is closed and a new one is rolled.")

    options = StorageOptions.parse({"log.segment.bytes": "1048576"})
    options.log_segment_bytes        # 1048576, an int, at the cost of a plain attribute

Names are Kafka's; an attribute is the name in snake case. A section is immutable: a change creates
a new one (`with_overrides`). Every option *acts* (something reads it), is *reserved* (accepted, and
warned about if it is not set to its default), or is *refused* (any value but the default is an
error, because ignoring it would be wrong). Consecutive reserved options are rows of one table: see
`reserved`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar, cast

from barnabas.config import reasons
from barnabas.model.errors import ConfigError

Dynamic = Literal["no", "broker", "cluster"]
"""How an option can be changed at run time: not at all, per broker, or also cluster-wide."""

SectionType = TypeVar("SectionType", bound="Section")


class Kind(IntEnum):
    """The type of an option's value; the numbers are those of DescribeConfigs.

    An object (a function, a TLS context) is used as is; only clients have such options.
    """

    OBJECT = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_WIDTHS = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


class Password:
    """A secret: compares by value; its repr is hidden."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Password) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return "[hidden]"


class Option:
    """One declared option."""

    __slots__ = (
        "at_least",
        "at_most",
        "attribute",
        "besides",
        "choices",
        "default",
        "doc",
        "dynamic",
        "kind",
        "name",
        "refused",
        "reserved",
        "synonym",
    )

    def __init__(
        self,
        name: str,
        kind: Kind,
        default: Any,
        *,
        at_least: float | None,
        at_most: float | None,
        besides: tuple[int, ...],
        choices: tuple[str, ...],
        doc: str,
        dynamic: Dynamic,
        reserved: str,
        refused: str,
        synonym: str | None,
    ) -> None:
        self.name = name
        self.attribute = attribute_name(name)
        self.kind = kind
        self.default = default
        self.at_least = at_least
        self.at_most = at_most
        self.besides = besides
        self.choices = choices
        self.doc = doc
        self.dynamic: Dynamic = dynamic
        self.reserved = reserved
        self.refused = refused
        self.synonym = synonym

    def __repr__(self) -> str:
        return f"<Option {self.name}>"

    @property
    def sensitive(self) -> bool:
        """Whether the value must not be shown."""
        return self.kind is Kind.PASSWORD

    @property
    def status(self) -> str:
        """`acts`, `reserved` or `refused`."""
        return "refused" if self.refused else "reserved" if self.reserved else "acts"

    def parse(self, value: object) -> Any:
        """Return the typed value of a string, or of a value that is already typed."""
        if value is None:
            if self.default is None:
                return None
            raise self.error(value, "a value is required")
        parsed = self._typed(value.strip() if isinstance(value, str) else value)
        if isinstance(parsed, (int, float)) and not isinstance(parsed, bool):
            self._check_bounds(parsed)
        if self.choices and parsed is not None and parsed != self.default:
            for element in parsed if self.kind is Kind.LIST else (parsed,):
                if element not in self.choices:
                    raise self.error(value, f"must be {_either(self.choices)}")
        if self.refused and parsed != self.default:
            raise self.error(value, f"refused: {self.refused}")
        return parsed

    def text(self, value: Any) -> str | None:
        """Return a typed value as a string, as Kafka shows it; secrets are None."""
        if value is None or self.sensitive:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return repr(value).upper().replace("E+", "E")
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value)

    def error(self, value: object, why: str) -> ConfigError:
        """Return the error that names the option, the value (unless secret) and what is wrong."""
        shown = "[hidden]" if self.sensitive else value
        return ConfigError(f"{self.name}={shown}: {why}")

    def _typed(self, value: object) -> Any:
        kind = self.kind
        if kind is Kind.OBJECT:
            return value
        if kind in _WIDTHS:
            return self._whole(value)
        if kind is Kind.BOOLEAN:
            if isinstance(value, str) and value.lower() in ("true", "false"):
                return value.lower() == "true"
            if isinstance(value, bool):
                return value
            raise self.error(value, "must be true or false")
        if kind is Kind.DOUBLE:
            return self._number(value)
        if kind is Kind.LIST:
            return self._elements(value)
        if kind is Kind.PASSWORD:
            return value if isinstance(value, Password) else Password(str(value))
        if not isinstance(value, str):
            raise self.error(value, "must be a string")
        return value

    def _whole(self, value: object) -> int:
        if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]+", value):
            number = int(value)
        elif isinstance(value, int) and not isinstance(value, bool):
            number = value
        else:
            raise self.error(value, "must be a whole number")
        limit = 1 << (_WIDTHS[self.kind] - 1)
        if not -limit <= number < limit:
            width = _WIDTHS[self.kind]
            raise self.error(value, f"must fit in {width} bits ({-limit} to {limit - 1})")
        return number

    def _number(self, value: object) -> float:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        try:
            number = float(cast(str, value))
        except (TypeError, ValueError):
            raise self.error(value, "must be a number") from None
        if number != number:
            raise self.error(value, "must be a number")
        return number

    def _elements(self, value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",")) if value else ()
        if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
            return tuple(value)
        raise self.error(value, "must be a comma-separated list")

    def _check_bounds(self, number: float) -> None:
        if number in self.besides:
            return
        also = f", or {' or '.join(map(str, self.besides))}" if self.besides else ""
        if self.at_least is not None and number < self.at_least:
            raise self.error(number, f"must be at least {self.at_least}{also}")
        if self.at_most is not None and number > self.at_most:
            raise self.error(number, f"must be at most {self.at_most}{also}")


def option(
    name: str,
    kind: str,
    *,
    default: object,
    doc: str,
    at_least: float | None = None,
    at_most: float | None = None,
    besides: tuple[int, ...] = (),
    choices: tuple[str, ...] = (),
    dynamic: Dynamic = "no",
    reserved: str = "",
    refused: str = "",
    synonym: str | None = None,
) -> Any:
    """Declare an option of a section.

    `kind` is the lower-case name of a Kind. `besides` lists numbers that are allowed outside the
    limits. A default of None means that the option may be unset. `reserved` and `refused` give the
    reason why it does not act. `synonym` is the broker option that a topic option falls back to.
    """
    assert not (reserved and refused), name
    return Option(
        name,
        Kind[kind.upper()],
        default,
        at_least=at_least,
        at_most=at_most,
        besides=besides,
        choices=choices,
        doc=doc,
        dynamic=dynamic,
        reserved=reserved,
        refused=refused,
        synonym=synonym,
    )


class Reserved(tuple[Option, ...]):
    """Options of a section that have no effect, and need no attributes."""


def reserved(table: str) -> Reserved:
    """Declare options that have no effect, one per line of a table.

    Its columns are the name, the kind (`int:0..100` has limits), the default (`-` is None, `[]` an
    empty list), how it can be changed at run time, the reason (a name in `reasons`), and the doc.
    """
    return Reserved(_reserved(*row.split(maxsplit=5)) for row in table.strip().splitlines())


def _reserved(name: str, kind: str, default: str, dynamic: str, reason: str, doc: str) -> Option:
    kind, _, bounds = kind.partition(":")
    at_least, _, at_most = bounds.partition("..")
    declared: Option = option(
        name,
        kind,
        default=None,
        at_least=_bound(at_least),
        at_most=_bound(at_most),
        dynamic=cast(Dynamic, dynamic),
        reserved=getattr(reasons, reason),
        doc=doc,
    )
    if default != "-":
        declared.default = () if default == "[]" else declared.parse(default)
    return declared


def _bound(text: str) -> float | None:
    return None if not text else float(text) if "." in text else int(text)


def attribute_name(name: str) -> str:
    """Return the snake case of an option's name: `zookeeper.clientCnxnSocket` has capitals, too."""
    if not name.islower():
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return name.replace(".", "_")


class Section:
    """A set of options with values: immutable, typed attributes.

    `given` has the values that were set, by name, as strings (secrets and objects as they are);
    `unknown` has the values that were set under unknown names.
    """

    options: ClassVar[Mapping[str, Option]] = MappingProxyType({})

    given: Mapping[str, Any]
    unknown: Mapping[str, str]

    def __init_subclass__(cls) -> None:
        collected: dict[str, Option] = {}
        for parent in cls.__bases__:
            collected.update(parent.__dict__.get("options", {}))
        for attribute, declared in list(vars(cls).items()):
            if isinstance(declared, Reserved):
                collected.update((row.name, row) for row in declared)
                delattr(cls, attribute)
            elif isinstance(declared, Option):
                assert declared.attribute == attribute, (
                    f"{declared.name} is declared as {attribute}"
                )
                collected[declared.name] = declared
                # Values are in the instance only, so that reading one is a plain attribute access.
                delattr(cls, attribute)
        cls.options = MappingProxyType(collected)

    @classmethod
    def parse(cls: type[SectionType], values: Mapping[str, object]) -> SectionType:
        """Return the section with these values set and the others at their defaults.

        Raise ConfigError for an invalid value; unknown names are kept in `unknown`.
        """
        attributes = {declared.attribute: declared.default for declared in cls.options.values()}
        return cls._build(attributes, values)

    @classmethod
    def find(cls, name: str) -> Option | None:
        """Return the option that a name sets, or None."""
        return cls.options.get(name)

    @classmethod
    def _build(
        cls: type[SectionType], attributes: dict[str, Any], values: Mapping[str, object]
    ) -> SectionType:
        given: dict[str, Any] = {}
        unknown: dict[str, str] = {}
        for name, value in values.items():
            declared = cls.find(name)
            if declared is None:
                unknown[name] = str(value)
                continue
            parsed = declared.parse(value)
            if name == declared.name:
                attributes[declared.attribute] = parsed
            if parsed is not None:
                given[name] = _as_given(declared, parsed)
        section = cls.__new__(cls)
        section.__dict__.update(attributes)
        section.__dict__["given"] = MappingProxyType(given)
        section.__dict__["unknown"] = MappingProxyType(unknown)
        section._derive(section.__dict__)
        return section

    def _derive(self, attributes: dict[str, Any]) -> None:
        """Check constraints across options, and add derived attributes."""

    def with_overrides(self: SectionType, values: Mapping[str, object]) -> SectionType:
        """Return a new section with these values on top of the current ones."""
        return type(self).parse({**self.unknown, **self.given, **values})

    def value(self, name: str) -> Any:
        """Return the typed value of an option by its name."""
        return getattr(self, self.options[name].attribute)

    def warnings(self) -> list[str]:
        """Return a line for each unknown name, and for each option that is set to no effect."""
        lines = [f"{name}: no such option{suggest(name, self.options)}" for name in self.unknown]
        for name in self.given:
            declared = self.find(name)
            assert declared is not None
            if declared.reserved and declared.parse(self.given[name]) != declared.default:
                lines.append(f"{name} is set, but has no effect: {declared.reserved}")
        return lines

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; use with_overrides")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; use with_overrides")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), frozenset(self.given.items())))

    def __repr__(self) -> str:
        shown = []
        for name, value in self.given.items():
            declared = self.find(name)
            assert declared is not None
            shown.append(f"{name}={'[hidden]' if declared.sensitive else value}")
        return f"{type(self).__name__}({', '.join(shown)})"


def _as_given(declared: Option, parsed: Any) -> Any:
    if declared.kind is Kind.OBJECT:
        return parsed
    return parsed.value if declared.sensitive else str(declared.text(parsed))


def suggest(name: str, names: Mapping[str, object]) -> str:
    """Return "; did you mean …?" if a known name is close to this one, else an empty string."""
    from difflib import get_close_matches  # slow to import, and only needed for errors

    close = get_close_matches(name, names, n=1, cutoff=0.8)
    return f"; did you mean {close[0]}?" if close else ""


def _either(choices: tuple[str, ...]) -> str:
    return choices[0] if len(choices) == 1 else f"{', '.join(choices[:-1])} or {choices[-1]}"
