"""The notation in which messages are declared, once, for all their versions.

    @struct
    class FetchTopic(Struct):
        topic: str = field("string", versions="0-12", ignorable=True)
        topic_id: bytes = field("uuid", versions="13+", ignorable=True)
        partitions: list[FetchPartition] = field([FetchPartition])

    @message(key=1, versions="0-18", flexible="12+")
    class FetchRequest(Message):
        topics: list[FetchTopic] = field([FetchTopic])

A type is the name of a primitive, a struct class, or a list of one of them (an array). A
declaration gives a plain class with `__slots__`, a keyword constructor in which every field has a
default, `==` and `repr`; it says nothing about bytes (see `codec`). The version is an argument of
the codec, never part of an object.

The arguments of a field:

- `versions`: where it exists. Read in another version it takes its default; written there, a value
  other than the default is an error, unless the field is `ignorable`.
- `nullable`: where None may be written; True stands for all its versions.
- `tag`: it is in the tagged section, in all its versions. An absent tagged struct is None.

Hundreds of classes are created at startup, so nothing is compiled here: constructors are, on first
use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, TypeVar, dataclass_transform

LAST_VERSION: Final = 32767

PRIMITIVES: Final[dict[str, object]] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "int32": 0,
    "int64": 0,
    "uint16": 0,
    "uint32": 0,
    "float64": 0.0,
    "uuid": bytes(16),
    "string": "",
    "bytes": b"",
    "records": None,
}
"""The primitive types, each with the default of a field that declares none."""


class Versions(NamedTuple):
    """A closed range of versions."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        if self.last == LAST_VERSION:
            return f"{self.first}+"
        return f"{self.first}-{self.last}" if self.last != self.first else str(self.first)


ALL_VERSIONS: Final = Versions(0, LAST_VERSION)


@cache
def versions_of(text: str) -> Versions:
    """Read `"3"`, `"3-7"` or `"3+"`."""
    if text.endswith("+"):
        return Versions(int(text[:-1]), LAST_VERSION)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


Kind: TypeAlias = "str | type[Struct]"

Records: TypeAlias = "bytes | bytearray | memoryview | None"
"""Concatenated record batches: a view into the frame when decoded."""


class Unset:
    """Means "not given" where None is a value; as a default, a new list or struct."""

    def __repr__(self) -> str:
        return "..."


UNSET: Final = Unset()


class Field:
    """One field of a struct, as declared."""

    __slots__ = ("default", "ignorable", "is_array", "kind", "name", "nullable", "tag", "versions")

    def __init__(
        self,
        kind: Kind,
        *,
        is_array: bool,
        versions: Versions,
        nullable: Versions | None,
        default: object,
        tag: int | None,
        ignorable: bool,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.is_array = is_array
        self.versions = versions
        self.nullable = nullable
        self.default = default
        self.tag = tag
        self.ignorable = ignorable

    @property
    def struct(self) -> type[Struct] | None:
        """The class of a struct or of an array's elements, if it is one."""
        return None if isinstance(self.kind, str) else self.kind

    def is_nullable(self, version: int) -> bool:
        """Return whether None may be written in a version."""
        return self.nullable is not None and version in self.nullable


def field(
    kind: Kind | list[Any],
    *,
    versions: str = "0+",
    nullable: str | bool = False,
    default: object = UNSET,
    tag: int | None = None,
    ignorable: bool = False,
) -> Any:
    """Declare a field; see the module's docstring for the arguments."""
    is_array = isinstance(kind, list)
    item: Kind = kind[0] if isinstance(kind, list) else kind
    if default is UNSET and not is_array:
        if isinstance(item, str):
            default = PRIMITIVES[item]
        elif tag is not None:
            default = None
    span = versions_of(versions)
    if isinstance(nullable, str):
        nulls: Versions | None = versions_of(nullable)
    else:
        nulls = span if nullable else None
    return Field(
        item,
        is_array=is_array,
        versions=span,
        nullable=nulls,
        default=default,
        tag=tag,
        ignorable=ignorable,
    )


class Struct:
    """Base of all declared classes; what does not depend on the fields."""

    __slots__ = ()

    FIELDS: ClassVar[tuple[Field, ...]] = ()

    def __init__(self, **values: Any) -> None:
        # Called once per class: the first object compiles the constructor of its class.
        cls = type(self)
        cls.__init__ = _constructor(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, f.name) == getattr(other, f.name) for f in self.FIELDS)

    def __repr__(self) -> str:
        values = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self.FIELDS)
        return f"{type(self).__name__}({values})"


class Message(Struct):
    """Base of whole messages: a struct with an API key and a range of versions."""

    __slots__ = ()

    KEY: ClassVar[int | None] = None
    VERSIONS: ClassVar[Versions] = ALL_VERSIONS
    FLEXIBLE: ClassVar[Versions | None] = None
    STABLE: ClassVar[Versions] = ALL_VERSIONS
    ENCODERS: ClassVar[dict[int, Any]] = {}
    DECODERS: ClassVar[dict[int, Any]] = {}
    PYTHON_CODECS: ClassVar[dict[tuple[str, int], Any]] = {}

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        """Return whether a version uses compact lengths and tagged fields."""
        return cls.FLEXIBLE is not None and version >= cls.FLEXIBLE.first


S = TypeVar("S", bound=Struct)
M = TypeVar("M", bound=Message)


@dataclass_transform(kw_only_default=True)
def struct(cls: type[S]) -> type[S]:
    """Turn a declaration of fields into a struct class."""
    return _with_slots(cls, {})


@dataclass_transform(kw_only_default=True)
def message(
    *,
    key: int | None = None,
    versions: str,
    flexible: str | None = None,
    stable: str | None = None,
) -> Callable[[type[M]], type[M]]:
    """Turn a declaration of fields into a message.

    `flexible` gives the versions with compact lengths and tags (none if absent); `stable` the
    versions that are offered to all clients, if the newest one is still experimental.
    """
    span = versions_of(versions)

    def decorate(cls: type[M]) -> type[M]:
        return _with_slots(
            cls,
            {
                "KEY": key,
                "VERSIONS": span,
                "FLEXIBLE": versions_of(flexible) if flexible else None,
                "STABLE": versions_of(stable) if stable else span,
                "ENCODERS": {},
                "DECODERS": {},
                "PYTHON_CODECS": {},
            },
        )

    return decorate


def _with_slots(cls: type[S], attributes: dict[str, object]) -> type[S]:
    """Rebuild a class whose body declared fields, so that they become slots."""
    namespace = dict(cls.__dict__)
    fields = []
    for name, value in cls.__dict__.items():
        if isinstance(value, Field):
            value.name = name
            fields.append(value)
            del namespace[name]
    del namespace["__dict__"], namespace["__weakref__"]
    namespace.update(attributes, FIELDS=tuple(fields), __slots__=tuple(f.name for f in fields))
    rebuilt: type[S] = type(cls.__name__, cls.__bases__, namespace)
    return rebuilt


def _constructor(cls: type[Struct]) -> Callable[..., None]:
    """Compile `__init__`: keywords only, all with defaults, lists and structs newly created."""
    names: dict[str, object] = {"UNSET": UNSET}
    parameters = ["self", "*"] if cls.FIELDS else ["self"]
    lines = []
    for f in cls.FIELDS:
        if f.default is UNSET:
            fresh = "[]"
            if not f.is_array:
                fresh = f"new_{f.name}()"
                names[f"new_{f.name}"] = f.kind
            parameters.append(f"{f.name}=UNSET")
            lines.append(f"    self.{f.name} = {fresh} if {f.name} is UNSET else {f.name}")
        else:
            parameters.append(f"{f.name}={f.default!r}")
            lines.append(f"    self.{f.name} = {f.name}")
    source = f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines or ["    pass"])
    exec(source, names)
    constructor: Any = names["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    return constructor  # type: ignore[no-any-return]
