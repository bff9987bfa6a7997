"""The names and signatures of barnabas.compat.confluent_kafka, and those of confluent-kafka.

Confluent's classes are written in C, and have no signatures: cimpl.pyi has them, and is what
editors show. A call that it allows must be possible here.
"""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

pytestmark = pytest.mark.compat

MODULES = ("", "admin", "aio", "cimpl", "error", "serialization")

LEFT_OUT = {
    "": {"DeserializingShareConsumer", "ShareConsumer", "AcknowledgeType", "Messages"},
    "cimpl": {"ShareConsumer"},
    "serialization": {"DeserializerBuilder", "SerializerBuilder"},
}
"""Share groups, and what makes serializers from a schema registry's properties."""

LEFT_OUT_OF_CLASSES = {
    "Serializer": {"set_cluster_id_resolver"},
    "Deserializer": {"set_cluster_id_resolver"},
    "Message": {"set_topic"},
}
"""Hooks for the schema registry; and a setter that confluent-kafka's own documentation omits."""

IMPORTED = {
    "Any",
    "Callable",
    "Dict",
    "Enum",
    "HeadersType",
    "List",
    "Optional",
    "Set",
    "Tuple",
    "Union",
}
"""What their modules import for themselves."""


NOT_SO = {"KafkaError.__init__", "KafkaError.__bool__", "Uuid.__int__"}
"""Methods that the stubs have and the classes do not, or with other arguments."""


def theirs(module: str) -> Any:
    return importlib.import_module("confluent_kafka" + (module and f".{module}"))


def ours(module: str) -> Any:
    return importlib.import_module("barnabas.compat.confluent_kafka" + (module and f".{module}"))


def public(module: Any) -> set[str]:
    names = {name for name in dir(module) if not name.startswith("_")}
    return {name for name in names if not inspect.ismodule(getattr(module, name))} - IMPORTED


@pytest.mark.parametrize("module", MODULES)
def test_every_name_exists(module: str) -> None:
    missing = public(theirs(module)) - set(dir(ours(module)))
    constants = {name for name in missing if isinstance(getattr(theirs(module), name), int)}
    if module == "cimpl":  # numbers behind the enumerations of `admin`
        missing -= constants
    missing -= {"Message", "KafkaException", "string_type"} if module != "" else set()
    assert missing == LEFT_OUT.get(module, set())


@pytest.mark.parametrize("module", MODULES)
def test_constants_are_equal(module: str) -> None:
    for name in public(theirs(module)) & set(dir(ours(module))):
        value = getattr(theirs(module), name)
        if isinstance(value, int):
            assert getattr(ours(module), name) == value, name


def classes() -> list[tuple[str, str]]:
    found = {}
    for module in MODULES:
        for name in sorted(public(theirs(module)) & set(dir(ours(module)))):
            if inspect.isclass(getattr(theirs(module), name)):
                found.setdefault(name, module)
    return [(module, name) for name, module in found.items()]


@pytest.mark.parametrize(("module", "name"), classes())
def test_classes_have_every_member(module: str, name: str) -> None:
    wanted, made = getattr(theirs(module), name), getattr(ours(module), name)
    hidden = {"__len__", "__enter__", "__exit__", "__iter__", "__getitem__"}
    members = {each for each in dir(wanted) if not each.startswith("_") or each in hidden}
    known = set(dir(made)) | set(
        vars(made("t", 1)) if name in ("NewTopic", "NewPartitions") else ()
    )
    left_out = set().union(
        *(LEFT_OUT_OF_CLASSES.get(each.__name__, set()) for each in made.__mro__)
    )
    assert members - known - left_out == set()
    assert issubclass(wanted, Exception) == issubclass(made, Exception)
    for base in wanted.__mro__[1:]:  # `except` clauses, and what may be passed where
        if base.__module__.startswith("confluent_kafka") and not base.__name__.startswith("_"):
            assert base.__name__ in [each.__name__ for each in made.__mro__]


def test_codes_and_enumerations_are_equal() -> None:
    made, wanted = ours("").KafkaError, confluent_kafka.KafkaError
    codes = {name: value for name in dir(wanted) if isinstance(value := getattr(wanted, name), int)}
    assert len(codes) > 180
    assert {name: getattr(made, name) for name in codes} == codes
    for name in codes:
        assert made(codes[name]).name() == name
    local = [code for code in codes.values() if code < -1]
    assert [made(code).str() for code in local] == [wanted(code).str() for code in local]
    for module, name in classes():
        enumeration = getattr(theirs(module), name)
        if hasattr(enumeration, "__members__"):
            made_members = getattr(ours(module), name).__members__
            assert {key: each.value for key, each in made_members.items()} == {
                key: each.value for key, each in enumeration.__members__.items()
            }, name


def stubs() -> dict[str, list[ast.arguments]]:
    """Return the arguments of their C functions and methods, each with its variants."""
    tree = ast.parse(Path(confluent_kafka.__file__).with_name("cimpl.pyi").read_text())
    found: dict[str, list[ast.arguments]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node.args)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for each in node.body:
                if isinstance(each, ast.FunctionDef):
                    found.setdefault(f"{node.name}.{each.name}", []).append(each.args)
    return found


STUBS = {name: found for name, found in stubs().items() if not name.startswith("ShareConsumer.")}


@pytest.mark.parametrize("path", sorted(STUBS))
def test_calls_of_the_stubs_are_possible(path: str) -> None:
    made: Any = ours("")
    owner, _, method = path.rpartition(".")
    if owner in ("NewTopic", "NewPartitions"):
        made = ours("admin")
    if method in LEFT_OUT_OF_CLASSES.get(owner, set()) or path in NOT_SO:
        return
    for part in path.split("."):
        made = getattr(made, part)
    signature = inspect.signature(made)
    for arguments in STUBS[path]:
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        keywords = [each.arg for each in arguments.kwonlyargs]
        signature.bind(*(object() for _ in names), **dict.fromkeys(keywords))
        named = [name for name in names if name != "self" and not path.startswith("KafkaError.__")]
        if (method.startswith("__") and method != "__init__") or arguments.posonlyargs:
            continue
        this = [object()] if "self" in names else []
        signature.bind(*this, **dict.fromkeys(named), **dict.fromkeys(keywords))
        defaults = [ast.literal_eval(each) for each in arguments.defaults if literal(each)]
        if len(defaults) == len(arguments.defaults) and path != "Message.__init__":
            expected = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
            assert {name: signature.parameters[name].default for name in expected} == expected


def literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return not (isinstance(node, ast.Constant) and node.value is ...)


@pytest.mark.parametrize(("module", "name"), classes())
def test_calls_of_python_methods_are_possible(module: str, name: str) -> None:
    """Their classes that are written in Python have signatures: each fits ours."""
    wanted, made = getattr(theirs(module), name), getattr(ours(module), name)
    for method, function in vars(wanted).items():
        if not inspect.isfunction(function) or (method.startswith("_") and method != "__init__"):
            continue
        if method in LEFT_OUT_OF_CLASSES.get(name, set()):
            continue
        parameters = inspect.signature(getattr(made, method)).parameters
        wanted_ones = inspect.signature(function).parameters.values()
        by_name = [each.name for each in wanted_ones if not str(each).startswith("*")]
        assert by_name == list(parameters)[: len(by_name)], method
