"""Options whose values are classes, functions or objects, and may be given by name.

A name is that of a Kafka class that has a counterpart here, or a Python import path:
`package.module.Name`. If an option takes several, a string is a comma-separated list. Names are
resolved when the options are parsed, so that a wrong one is rejected when the client is created.

Our own classes are named by their paths and imported on demand: this package is below theirs.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from barnabas.model.errors import ConfigError

_KAFKAS = "org.apache.kafka.common.serialization"
_TYPES = (
    "Boolean",
    "ByteArray",
    "ByteBuffer",
    "Bytes",
    "Double",
    "Float",
    "Integer",
    "List",
    "Long",
    "Short",
    "String",
    "UUID",
    "Void",
)


class Role(NamedTuple):
    """What the objects of an option are for."""

    what: str
    methods: tuple[str, ...]
    """An object has one of these …"""
    may_be_function: bool
    """… or is called itself."""
    paths: Mapping[str, str] = MappingProxyType({})
    """The path of our class for each of Kafka's class names."""
    names: frozenset[str] = frozenset()
    """Names that the user of the option understands; they are not resolved here."""


def _serialization(kind: str) -> dict[str, str]:
    paths = {f"{_KAFKAS}.{each}{kind}": f"barnabas.serialization.{each}{kind}" for each in _TYPES}
    return paths | {
        f"org.apache.kafka.connect.json.Json{kind}": f"barnabas.serialization.Json{kind}"
    }


_ASSIGNORS = ("RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor")
_PARTITIONERS = ("RoundRobinPartitioner", "UniformStickyPartitioner")

ROLES: Mapping[str, Role] = MappingProxyType(
    {
        "serializer": Role("serializer", ("serialize",), True, _serialization("Serializer")),
        "deserializer": Role(
            "deserializer", ("deserialize",), True, _serialization("Deserializer")
        ),
        "interceptor": Role(
            "interceptor", ("on_send", "on_acknowledgement", "on_consume", "on_commit"), False
        ),
        "partitioner": Role(
            "partitioner",
            ("partition",),
            True,
            names=frozenset(
                {
                    *("default", "sticky", "murmur2_random", "round_robin", "random"),
                    *("DefaultPartitioner", *_PARTITIONERS),
                    *(f"org.apache.kafka.clients.producer.{each}" for each in _PARTITIONERS),
                    "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
                }
            ),
        ),
        "assignor": Role(
            "assignor",
            ("assign",),
            False,
            names=frozenset(
                {
                    *("range", "roundrobin", "sticky", "cooperative-sticky", "random"),
                    *_ASSIGNORS,
                    *(f"org.apache.kafka.clients.consumer.{each}" for each in _ASSIGNORS),
                }
            ),
        ),
        "callback": Role("callback", (), True),
        "token provider": Role("token provider", ("token",), True),
    }
)


def found(option: str, role: Role, given: Any) -> Any:
    """Resolve an option's value; raise ConfigError if it does not fit the role."""
    shown = given
    if isinstance(given, str):
        name = given.strip()
        if name in role.names:
            return name
        given = _imported(option, role, role.paths.get(name, name), name)
    if given is not None and not _suits(role, given):
        wanted = [f"an object with {' or '.join(role.methods)}"] if role.methods else []
        wanted += ["a function"] if role.may_be_function else []
        raise ConfigError(f"{option}={shown}: invalid {role.what}: must be {' or '.join(wanted)}")
    return given


def all_found(option: str, role: Role, given: Any) -> tuple[Any, ...]:
    """Resolve a list of names, classes and objects; a string is split at commas."""
    if isinstance(given, str):
        given = [name for name in given.split(",") if name.strip()]
    elif not isinstance(given, Iterable) or isinstance(given, type):
        given = [given]
    return tuple(found(option, role, each) for each in given)


def made(option: str, role: Role, given: Any, configs: Mapping[str, Any], is_key: bool) -> Any:
    """Resolve a (de)serializer; a class is instantiated and configured with the options."""
    given = found(option, role, given)
    if not isinstance(given, type) or not _has_method(role, given):
        return given
    try:
        instance = given()
    except TypeError as failure:
        raise ConfigError(
            f"{option}={given.__qualname__}: cannot be created without arguments ({failure}): "
            "give an object instead of the class"
        ) from failure
    configure = getattr(instance, "configure", None)
    if callable(configure):
        configure(configs, is_key)
    return instance


def _suits(role: Role, given: Any) -> bool:
    return _has_method(role, given) or (role.may_be_function and callable(given))


def _has_method(role: Role, given: Any) -> bool:
    return any(callable(getattr(given, name, None)) for name in role.methods)


def _imported(option: str, role: Role, path: str, name: str) -> Any:
    module_name, _, attribute = path.replace(":", ".").rpartition(".")
    if not module_name or not all(
        part.isidentifier() for part in path.replace(":", ".").split(".")
    ):
        raise ConfigError(f"{option}={name}: no such {role.what}{_nearest(role, name)}")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as failure:
        if failure.name is None or not f"{module_name}.".startswith(f"{failure.name}."):
            raise ConfigError(f"{option}={name}: importing it failed: {failure}") from failure
        outer, _, inner = module_name.rpartition(".")
        if outer and inner[:1].isupper():  # a class inside a class
            return _attribute(option, role, _imported(option, role, module_name, name), attribute)
        raise ConfigError(
            f"{option}={name}: no Python module {failure.name!r}{_nearest(role, name)}"
        ) from None
    except Exception as failure:  # a module of the user's may raise anything
        raise ConfigError(f"{option}={name}: importing it failed: {failure!r}") from failure
    return _attribute(option, role, module, attribute)


def _attribute(option: str, role: Role, owner: Any, attribute: str) -> Any:
    value = getattr(owner, attribute, None)
    if value is None:
        usable = [each for each in vars(owner) if _suits(role, getattr(owner, each))]
        close = _close(attribute, usable)
        raise ConfigError(
            f"{option}: {owner.__name__} has no {attribute!r}"
            + (f"; did you mean {owner.__name__}.{close}?" if close else "")
        )
    return value


def _nearest(role: Role, name: str) -> str:
    """Return "; did you mean …?" with the known name that is closest to this one."""
    known = [*role.names, *role.paths]
    short = name.rpartition(".")[2]
    close = _close(name, known)
    if close is None:
        lasts = {each.rpartition(".")[2]: each for each in sorted(known)}
        last = _close(short, list(lasts))
        close = None if last is None else lasts[last]
    if close is not None:
        return f"; did you mean {close}?"
    return "; must be a Python path (package.module.Name) or one of Kafka's own classes"


def _close(name: str, names: list[str]) -> str | None:
    from difflib import get_close_matches  # slow to import, and only needed for errors

    return next(iter(get_close_matches(name, names, n=1, cutoff=0.7)), None)
