"""What a test double overrides exists in its base: else nobody calls it, and it checks nothing.

A double is a class of the tests that inherits from one of ours. Each of its methods must be found
in a base, or be used by name somewhere in the tests, outside of its own definitions. What it asks
of `super()` must be found in a base in any case.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from barnabas.broker.broker import Broker

ROOT = Path(__file__).resolve().parent.parent.parent
SUBCLASS = re.compile(r"^ *class \w+\(", re.MULTILINE)
USE = re.compile(r"""(?<!super\(\))\.([A-Za-z_]\w*)|["']([A-Za-z_]\w*)["']""")


@dataclass(slots=True, eq=False)
class Module:
    """A file of the tests: its classes, and where its names come from."""

    text: str
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)


class Sources:
    """All files of the tests."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.modules = {
            name: self._read(text) for name, text in texts.items() if SUBCLASS.search(text)
        }
        self.used: Counter[str] = Counter()
        """How often a name is an attribute that is asked for, or a string, in all files."""
        for text in texts.values():
            self.used.update(_used(text))

    @staticmethod
    def _read(text: str) -> Module:
        module = Module(text)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                for each in node.names:
                    module.imported[each.asname or each.name] = node.module, each.name
            elif isinstance(node, ast.ClassDef):
                module.classes[node.name] = node
        return module

    def doubles(self) -> Iterator[tuple[str, Module, ast.ClassDef, set[str]]]:
        """Yield the classes that inherit from ours, and the names that they inherit."""
        for name, module in self.modules.items():
            for double in module.classes.values():
                inherited = self._inherited(module, double)
                if inherited:
                    yield name, module, double, inherited

    def stale(self) -> Iterator[str]:
        """Yield the methods of doubles that look like overrides of nothing."""
        for name, module, double, inherited in self.doubles():
            for method in double.body:
                if not isinstance(method, _FUNCTIONS):
                    continue
                asked = set(_asked_of_super(method)) - inherited
                yield from (f"{name}: {double.name}: super().{each}" for each in sorted(asked))
                if method.name in inherited or method.name.startswith("__"):
                    continue
                source = ast.get_source_segment(module.text, method) or ""
                in_itself = Counter(_used(source))[method.name]
                if self.used[method.name] == in_itself and not method.decorator_list:
                    yield f"{name}: {double.name}.{method.name}"

    def _inherited(self, module: Module, double: ast.ClassDef) -> set[str]:
        """Return the names that a class has from bases of ours; none if it has no such base."""
        ours: set[str] = set()
        others: set[str] = set()
        for base in double.bases:
            if not isinstance(base, ast.Name):
                continue
            if base.id in module.classes and base.id != double.name:
                parent, home = module.classes[base.id], module
            else:
                source, original = module.imported.get(base.id, ("", ""))
                if source.startswith("barnabas"):
                    ours.update(dir(getattr(importlib.import_module(source), original)))
                    continue
                home = self.modules.get(source, module)
                found = home.classes.get(original)
                if found is None:
                    continue
                parent = found
            inherited = self._inherited(home, parent)
            ours |= inherited
            if inherited:
                others.update(node.name for node in parent.body if isinstance(node, _FUNCTIONS))
        return ours | others


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _used(text: str) -> Iterator[str]:
    return (attribute or string for attribute, string in USE.findall(text))


def _asked_of_super(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and _is_super(each.value):
            yield each.attr


def _is_super(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


def texts() -> dict[str, str]:
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path.read_text()
        for folder in ("tests", "bench")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


def test_every_override_exists_in_its_base() -> None:
    sources = Sources(texts())
    assert len(list(sources.doubles())) > 30
    assert list(sources.stale()) == []


DOUBLE = """
from barnabas.broker.broker import Broker

class Watched(Broker):
    def {name}(self):
        {body}

class Further(Watched):
    def {name}(self):
        return 1
"""


@pytest.mark.parametrize(
    ("name", "body", "complaints"),
    [
        ("start", "return super().start()", []),
        ("_join_the_cluster", "return None", ["Watched._join_the_cluster"]),
        (
            "_join_the_cluster",
            "return super()._join_the_cluster()",
            ["super()._join_the_cluster", "Watched._join_the_cluster"],
        ),
        ("helper", "return self._join_the_cluster()", ["Watched.helper"]),
    ],
)
def test_an_override_of_nothing_is_noticed(name: str, body: str, complaints: list[str]) -> None:
    assert hasattr(Broker, "start")
    source = DOUBLE.format(name=name, body=body)
    found = [each.split(": ", 1)[1] for each in Sources({"tests.x": source}).stale()]
    assert [each.removeprefix("Watched: ") for each in found] == complaints


def test_what_the_tests_use_by_name_is_no_override() -> None:
    source = DOUBLE.format(name="seen", body="return 1") + "\nassert Watched().seen()\n"
    assert list(Sources({"tests.x": source}).stale()) == []
