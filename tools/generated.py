"""A page of the documentation that is written from the sources: write it, or check it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main(page: Path, text: str, module: str) -> int:
    """Write a page; with `--check` compare it only. Return the exit status.

    `module` is what writes it, as in `python -m module`.
    """
    shown = page.relative_to(ROOT)
    parser = argparse.ArgumentParser(prog=module, description=f"Write {shown}.")
    parser.add_argument("--check", action="store_true", help="fail when the page is stale")
    if not parser.parse_args().check:
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)
        print(f"wrote {shown}")
    elif not page.exists() or page.read_text() != text:
        print(f"{shown} is stale: run python -m {module}", file=sys.stderr)
        return 1
    return 0
