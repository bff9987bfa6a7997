"""`spark-pipeline.yml`: parsed, or rejected with a line that names the field, value and bound.

    name: clicks
    storage: file:///data/clicks/storage     # checkpoints
    libraries:
      - glob: {include: transformations/**}
    catalog, database (or schema), configuration: as in Spark

Fields and their meanings are Spark's. A pattern names a file, or a folder with `/**` after it.
"""

from __future__ import annotations

import glob
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from barnabas.pipeline.errors import PipelineError

FILE_NAMES = ("spark-pipeline.yml", "spark-pipeline.yaml")
FIELDS = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")
SUFFIXES = (".py", ".sql")


@dataclass(frozen=True, slots=True)
class Spec:
    """A project: its folder and its spec."""

    path: Path
    name: str
    storage: str
    catalog: str | None
    database: str | None
    configuration: Mapping[str, str]
    files: tuple[Path, ...]

    @property
    def directory(self) -> Path:
        """The folder of the project."""
        return self.path.parent

    @property
    def local_storage(self) -> Path | None:
        """The folder of checkpoints, if it is on this machine."""
        parts = urlsplit(self.storage)
        return Path(parts.path) if parts.scheme == "file" else None


def read_spec(directory: Path) -> Spec:
    """Read the spec of a project; raise PipelineError for any error in it."""
    path = _find(directory)
    fields = _fields(path)
    _check_names(path, fields)
    storage = _text(path, fields, "storage")
    if "://" not in storage and not storage.startswith("file:/"):
        raise PipelineError(
            f"{path.name}: storage: {storage}: must be an absolute path with its scheme, "
            f"such as file://{path.parent / 'storage'}"
        )
    optional = {
        name: _text(path, fields, name)
        for name in ("catalog", "database", "schema")
        if fields.get(name) is not None
    }
    return Spec(
        path,
        _text(path, fields, "name"),
        storage,
        optional.get("catalog"),
        optional.get("database", optional.get("schema")),
        _configuration(path, fields),
        _files(path, fields),
    )


def _find(directory: Path) -> Path:
    if directory.is_file():
        return directory.resolve()
    found = [directory / name for name in FILE_NAMES if (directory / name).is_file()]
    if len(found) == 1:
        return found[0].resolve()
    if found:
        raise PipelineError(f"{directory}: has both {' and '.join(FILE_NAMES)}: remove one")
    raise PipelineError(
        f"{directory}: has no {FILE_NAMES[0]}; write a project with: barnabas pipeline init"
    )


def _fields(path: Path) -> dict[str, Any]:
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise PipelineError("pipelines need PyYAML: pip install 'barnabas[spark]'") from None

    try:
        fields = yaml.safe_load(path.read_text("utf-8"))
    except yaml.MarkedYAMLError as failure:
        mark = failure.problem_mark
        where = path.name if mark is None else f"{path.name}:{mark.line + 1}"
        raise PipelineError(f"{where}: not valid YAML: {failure.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as failure:
        raise PipelineError(f"{path.name}: not valid YAML: {failure}") from None
    if not isinstance(fields, dict):
        raise PipelineError(f"{path.name}: must have fields such as name, storage and libraries")
    return fields


def _check_names(path: Path, fields: Mapping[Any, Any]) -> None:
    for name in fields:
        if name not in FIELDS:
            close = get_close_matches(str(name), FIELDS, n=1)
            there = f"did you mean {close[0]}?" if close else f"must be one of: {', '.join(FIELDS)}"
            raise PipelineError(f"{path.name}: {name}: no such field; {there}")
    for name in ("name", "storage", "libraries"):
        if fields.get(name) is None:
            raise PipelineError(f"{path.name}: {name}: must be set")


def _text(path: Path, fields: Mapping[str, Any], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str) or not value.strip():
        raise PipelineError(f"{path.name}: {name}: {value!r}: must be a string")
    return value.strip()


def _configuration(path: Path, fields: Mapping[str, Any]) -> dict[str, str]:
    found = fields.get("configuration") or {}
    if not isinstance(found, dict):
        raise PipelineError(f"{path.name}: configuration: must be names and values, not {found!r}")
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise PipelineError(
                f"{path.name}: configuration: {name}: {value!r}: must be a string; put it in quotes"
            )
    return dict(found)


def _files(path: Path, fields: Mapping[str, Any]) -> tuple[Path, ...]:
    entries = fields["libraries"]
    if not isinstance(entries, list) or not entries:
        raise PipelineError(f"{path.name}: libraries: must be a list of glob: {{include: PATTERN}}")
    found: dict[Path, None] = {}
    for entry in entries:
        inner = entry.get("glob") if isinstance(entry, dict) else None
        pattern = inner.get("include") if isinstance(inner, dict) else None
        if not isinstance(pattern, str):
            raise PipelineError(
                f"{path.name}: libraries: {entry!r}: must look like glob: {{include: PATTERN}}"
            )
        matches = _matches(path, pattern)
        if not matches:
            raise PipelineError(f"{path.name}: libraries: {pattern}: no such file")
        found |= dict.fromkeys(matches)
    return tuple(found)


def _matches(path: Path, pattern: str) -> list[Path]:
    folder = pattern.removesuffix("/**")
    if glob.has_magic(folder):
        raise PipelineError(
            f"{path.name}: libraries: {pattern}: must be a file, or a folder with /** after it"
        )
    target = path.parent / folder
    if folder == pattern:
        files = [target] if target.is_file() else []
    else:
        files = sorted(
            each for each in target.rglob("*") if each.is_file() and "__pycache__" not in each.parts
        )
    for each in files:
        if each.suffix not in SUFFIXES:
            raise PipelineError(
                f"{each.relative_to(path.parent)}: must end in {' or '.join(SUFFIXES)}, as it is "
                f"among the libraries ({pattern})"
            )
    return files
