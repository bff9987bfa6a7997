"""The declarations, held field by field and version by version against Kafka's own schema files.

The files are not part of the project: they are looked for beside the checkout, in `../shared`, and
the test is skipped without them. `kafka-messages` is Kafka 3.9, `kafka-messages-4x` the 4.x line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.unit.wire.samples import all_messages

from barnabas.wire.apis import APIS, OWN_KEYS_FROM
from barnabas.wire.schema import PRIMITIVES, UNSET, Field, Message, Struct, Versions

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
FOLDERS = (SHARED / "kafka-messages", SHARED / "kafka-messages-4x")

RENAMED = {
    "ListConfigResourcesRequest": "ListClientMetricsResourcesRequest",
    "ListConfigResourcesResponse": "ListClientMetricsResourcesResponse",
}
"""What 3.9 calls messages that 4.x renamed, together with some of their fields."""

BEYOND_THE_FILES = {
    "ConsumerGroupHeartbeatRequest": {1},
    "ConsumerGroupHeartbeatResponse": {1},
    "ConsumerGroupDescribeRequest": {1},
    "ConsumerGroupDescribeResponse": {1},
}
"""Versions that neither folder has; the golden test holds them against kio."""

KAFKAS = [cls for cls in all_messages() if cls.KEY is None or cls.KEY < OWN_KEYS_FROM]

needs_files = pytest.mark.skipif(
    not all(folder.is_dir() for folder in FOLDERS),
    reason="Kafka's schema files are not beside the checkout (../shared/kafka-messages*)",
)


def snake(name: str) -> str:
    name = name.replace("KRaft", "Kraft").replace("Enable2Pc", "Enable_2pc")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@cache
def read_schema(path: Path) -> dict[str, Any]:
    lines = (re.sub(r"(^|\s)//.*$", "", line) for line in path.read_text().splitlines())
    schema: dict[str, Any] = json.loads("\n".join(lines))
    return schema


def span(text: str | None) -> Versions | None:
    if text in (None, "none"):
        return None
    first, _, last = str(text).partition("-")
    if first.endswith("+"):
        return Versions(int(first[:-1]), 32767)
    return Versions(int(first), int(last or first))


def schemas_of(cls: type[Message]) -> Iterator[dict[str, Any]]:
    """Yield what each folder says about a message."""
    for folder in FOLDERS:
        for name in (cls.__name__, RENAMED.get(cls.__name__)):
            path = folder / f"{name}.json"
            if path.exists():
                yield read_schema(path)


def schema_default(field: dict[str, Any], kind: str, is_array: bool) -> Any:
    text = field.get("default")
    if text is None:
        if is_array:
            return []
        return PRIMITIVES.get(kind, "a struct of defaults")
    if text == "null":
        return None
    if kind == "bool":
        return str(text).lower() == "true"
    return text if kind == "string" else int(str(text), 0)


def schema_layout(fields: list[Any], common: dict[str, Any], version: int) -> list[Any]:
    """Return the fields that a schema file has in a version, in order, as comparable tuples."""
    layout = []
    for field in fields:
        versions = span(field["versions"])
        assert versions is not None
        if version not in versions:
            continue
        is_array = field["type"].startswith("[]")
        kind = field["type"].removeprefix("[]")
        inner = field.get("fields") or common.get(kind, {}).get("fields")
        nullable = span(field.get("nullableVersions"))
        tagged = span(field.get("taggedVersions"))
        layout.append(
            (
                snake(field["name"]),
                "struct" if inner else kind,
                is_array,
                nullable is not None and version in nullable,
                schema_default(field, kind, is_array),
                field["tag"] if tagged is not None and version in tagged else None,
                schema_layout(inner, common, version) if inner else None,
            )
        )
    return layout


def declared_default(f: Field) -> Any:
    if f.default is UNSET:
        return [] if f.is_array else "a struct of defaults"
    if f.struct is not None and not f.is_array and f.nullable is None:
        # Ours: None stands for the absent tagged struct.
        assert f.tag is not None
        assert f.default is None
        return "a struct of defaults"
    return f.default


def declared_layout(cls: type[Struct], version: int) -> list[Any]:
    """Return the fields that we declare in a version, in order, as comparable tuples."""
    return [
        (
            f.name,
            f.kind if f.struct is None else "struct",
            f.is_array,
            f.is_nullable(version),
            declared_default(f),
            f.tag,
            declared_layout(f.struct, version) if f.struct is not None else None,
        )
        for f in cls.FIELDS
        if version in f.versions
    ]


def without_names(layout: list[Any] | None) -> list[Any] | None:
    if layout is None:
        return None
    return [(*row[1:-1], without_names(row[-1])) for row in layout]


@needs_files
@pytest.mark.parametrize("cls", KAFKAS, ids=lambda cls: cls.__name__)
def test_every_version_has_the_fields_of_the_schema(cls: type[Message]) -> None:
    compared = set()
    for schema in schemas_of(cls):
        valid = span(schema["validVersions"])
        assert valid is not None
        common = {struct["name"]: struct for struct in schema.get("commonStructs", [])}
        for version in range(valid.first, valid.last + 1):
            expected = schema_layout(schema["fields"], common, version)
            declared = declared_layout(cls, version)
            if schema["name"] == cls.__name__:
                assert declared == expected, f"version {version}"
            else:
                assert without_names(declared) == without_names(expected), f"version {version}"
            compared.add(version)
    assert compared | BEYOND_THE_FILES.get(cls.__name__, set()) == set(
        range(cls.VERSIONS.first, cls.VERSIONS.last + 1)
    )


@needs_files
@pytest.mark.parametrize("cls", KAFKAS, ids=lambda cls: cls.__name__)
def test_key_flexible_and_stable_versions_are_those_of_the_schema(cls: type[Message]) -> None:
    schema = list(schemas_of(cls))[-1]
    assert schema.get("apiKey") == cls.KEY
    assert span(schema["flexibleVersions"]) == cls.FLEXIBLE
    unstable = str(schema.get("latestVersionUnstable", False)).lower() == "true"
    assert Versions(cls.VERSIONS.first, cls.VERSIONS.last - unstable) == cls.STABLE


@needs_files
@pytest.mark.parametrize("cls", KAFKAS, ids=lambda cls: cls.__name__)
def test_ignorable_fields_are_those_of_the_schema(cls: type[Message]) -> None:
    schema = list(schemas_of(cls))[-1]
    common = {struct["name"]: struct for struct in schema.get("commonStructs", [])}

    def compare(fields: list[Any], declared: type[Struct], parent: Versions) -> None:
        by_name = {f.name: f for f in declared.FIELDS}
        for field in fields:
            versions = span(field["versions"])
            assert versions is not None
            if versions.first > parent.last or versions.last < parent.first:
                continue  # The schema has it only where its struct is not sent.
            f = by_name[snake(field["name"])]
            assert f.ignorable == bool(field.get("ignorable", False)), f.name
            inner = field.get("fields") or common.get(field["type"].removeprefix("[]"), {}).get(
                "fields"
            )
            if inner:
                assert f.struct is not None
                compare(inner, f.struct, versions)

    compare(schema["fields"], cls, cls.VERSIONS)


def test_both_messages_of_an_api_agree_on_key_and_versions() -> None:
    for entry in APIS:
        request, response = entry.request, entry.response
        assert request.KEY == response.KEY == entry.key
        assert request.VERSIONS == response.VERSIONS
        assert request.FLEXIBLE == response.FLEXIBLE


def test_no_module_declares_what_the_table_lacks() -> None:
    folder = Path(__file__).resolve().parents[3] / "src/barnabas/wire/messages"
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "consumer_protocol"}
    assert modules == {entry.request.__module__.rpartition(".")[2] for entry in APIS}


def test_fields_that_a_version_lacks_can_all_be_left_out() -> None:
    for cls in all_messages():
        assert cls() == cls()
        assert repr(cls()).startswith(cls.__name__)
