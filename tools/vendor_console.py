"""Fetch the console's scripts from npm, or check that they are what the manifest says.

    python tools/vendor_console.py --check
    python tools/vendor_console.py --write     # runs `npm pack`

`vendor.json` has the package, version, licence, path and SHA-256 of each file. Nothing is built.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

STATIC = Path(__file__).parent.parent / "src" / "barnabas" / "console" / "static"
MANIFEST = STATIC / "vendor.json"

LICENCES = {"htmx.org": "0BSD", "uplot": "MIT"}
FILES = {
    "htmx.min.js": ("htmx.org", "4.0.1", "dist/htmx.min.js"),
    "hx-sse.min.js": ("htmx.org", "4.0.1", "dist/ext/hx-sse.min.js"),
    "uPlot.iife.min.js": ("uplot", "1.6.32", "dist/uPlot.iife.min.js"),
    "uPlot.min.css": ("uplot", "1.6.32", "dist/uPlot.min.css"),
}


def fetch() -> dict[str, bytes]:
    """Return the files, from packages that npm downloads."""
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as directory:
        for package, version in sorted({(each[0], each[1]) for each in FILES.values()}):
            packed = subprocess.run(
                ["npm", "pack", "--json", f"{package}@{version}"],
                cwd=directory,
                check=True,
                capture_output=True,
                text=True,
            )
            [described] = json.loads(packed.stdout)
            with tarfile.open(Path(directory) / described["filename"]) as archive:
                for name, (owner, _, path) in FILES.items():
                    if owner == package:
                        member = archive.extractfile(f"package/{path}")
                        assert member is not None, f"{package}@{version} has no {path}"
                        found[name] = member.read()
    return found


def manifest(contents: dict[str, bytes]) -> dict[str, Any]:
    """Return the manifest of files."""
    return {
        name: {
            "package": package,
            "version": version,
            "licence": LICENCES[package],
            "path": path,
            "sha256": sha256(contents[name]).hexdigest(),
        }
        for name, (package, version, path) in FILES.items()
    }


def complaints() -> list[str]:
    """Return what is wrong with the files."""
    known = json.loads(MANIFEST.read_text("utf-8"))
    wrong = [f"{name}: not in vendor.json" for name in FILES if name not in known]
    for name, entry in known.items():
        path = STATIC / name
        if not path.exists():
            wrong.append(f"{name}: missing")
        elif sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
            wrong.append(f"{name}: is not what vendor.json says")
    return wrong


def main() -> int:
    """Fetch or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="compare the files with the manifest")
    action.add_argument("--write", action="store_true", help="fetch the files, write the manifest")
    if parser.parse_args().write:
        contents = fetch()
        for name, content in contents.items():
            (STATIC / name).write_bytes(content)
        MANIFEST.write_text(json.dumps(manifest(contents), indent=2) + "\n", "utf-8")
    wrong = complaints()
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
