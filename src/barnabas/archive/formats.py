"""The format of a file: by its extension, or as the user says."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from barnabas.archive.text import ArchiveError


class Format(Enum):
    """A format of files; its value is their extension."""

    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


def format_of(path: Path) -> Format | None:
    """Return the format of a file by its extension; None if it has none of ours."""
    ending = path.suffix.removeprefix(".").lower()
    return next((each for each in Format if each.value == ending), None)


def files_of(path: Path, chosen: Format | None) -> list[tuple[Path, Format]]:
    """Return the files to import: one, or those of a directory sorted by name."""
    if not path.is_dir():
        found = chosen or format_of(path)
        if found is None:
            endings = ", ".join(f".{each.value}" for each in Format)
            raise ArchiveError(f"{path}: must end in one of {endings}, or set --format")
        return [(path, found)]
    files = []
    for each in sorted(path.iterdir()):
        found = format_of(each)
        if found is not None and not each.name.startswith("."):
            files.append((each, found))
    wanted = [each for each in files if chosen is None or each[1] is chosen]
    if not wanted:
        kind = "Parquet, CSV or JSON lines" if chosen is None else chosen.value
        raise ArchiveError(f"{path}: the directory has no {kind} file")
    return wanted
