"""Build the pages as a site, in build/site: with search, light and dark, nothing from elsewhere.

python -m tools.build_site           gather, build, check
python -m tools.build_site --serve   and serve it here, at a port of the system's choice

README.md is the first page. A link to a page or heading that does not exist fails the build; links
to files that are no pages lose their target. The browser needs no other host: the one script that
is not the theme's, which draws the diagrams, is fetched from npm once. Pages forbid all others.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"
KEPT = ROOT / ".deps" / "mermaid"
MERMAID = "mermaid@11.17.2"
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
FETCHED_BY_STYLE = re.compile(r"(?:@import|url\()[\s(url]*[\"']?((?:https?:)?//[^\"')]+)")
MOVED = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}
"""Pages outside of docs/, and where they are in the site."""


def gather() -> None:
    """Copy the pages, with links as the site needs them."""
    shutil.rmtree(PAGES, ignore_errors=True)
    sources = [ROOT / name for name in MOVED] + sorted(DOCS.rglob("*.md"))
    placed = {source.relative_to(ROOT).as_posix(): _place(source) for source in sources}
    for source in sources:
        own = source.relative_to(ROOT).as_posix()
        target = PAGES / placed[own]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(relinked(source.read_text(), own, placed))


def _place(source: Path) -> str:
    name = source.relative_to(ROOT).as_posix()
    return MOVED.get(name) or source.relative_to(DOCS).as_posix()


def relinked(text: str, own: str, placed: dict[str, str]) -> str:
    """Return a page of the path `own` with its links to where pages are `placed`."""

    def relink(found: re.Match[str]) -> str:
        words, link = found.groups()
        path, hash_, anchor = link.partition("#")
        if not path or "://" in link or link.startswith("mailto:"):
            return found[0]
        named = posixpath.normpath(posixpath.join(posixpath.dirname(own), path))
        if named not in placed:
            if not (ROOT / named).exists():
                raise SystemExit(f"site: {own}: {link} does not exist")
            return str(words)  # a file of the source, or a folder
        target = posixpath.relpath(placed[named], posixpath.dirname(placed[own]) or ".")
        return f"[{words}]({target}{hash_}{anchor})"

    parts, at = [], 0
    for fence in FENCE.finditer(text):
        parts += [LINK.sub(relink, text[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, LINK.sub(relink, text[at:])])


def fetch_mermaid() -> None:
    """Put the script that draws diagrams beside the pages; say so if it cannot be had."""
    script = KEPT / "mermaid.min.js"
    if not script.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        npm = shutil.which("npm")
        words = [npm or "npm", "pack", "--silent", MERMAID]
        if npm is None or subprocess.run(words, cwd=KEPT, stdout=subprocess.DEVNULL).returncode:
            raise SystemExit(f"site: {MERMAID} could not be fetched with npm: is it installed?")
        [packed] = KEPT.glob("*.tgz")
        with tarfile.open(packed) as archive:
            found = archive.extractfile("package/dist/mermaid.min.js")
            assert found is not None
            script.write_bytes(found.read())
        packed.unlink()
    (PAGES / "assets").mkdir(exist_ok=True)
    shutil.copy(script, PAGES / "assets")


class References(HTMLParser):
    """What a browser fetches to show a page, without being asked by the reader."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video", "audio", "embed", "object"):
            self.fetched += [values.get("src") or values.get("data") or ""]
        elif tag == "link" and values.get("rel") not in ("canonical", "next", "prev", "alternate"):
            self.fetched += [values.get("href") or ""]


def from_elsewhere(site: Path) -> Iterator[str]:
    """Yield what pages and styles of a site fetch from other hosts."""
    for page in sorted(site.rglob("*.html")):
        references = References()
        references.feed(page.read_text())
        for reference in references.fetched:
            if re.match(r"(?:[a-z]+:)?//", reference):
                yield f"{page.relative_to(site)}: {reference}"
    for style in sorted(site.rglob("*.css")):
        for reference in FETCHED_BY_STYLE.findall(style.read_text()):
            yield f"{style.relative_to(site)}: {reference}"


def main() -> int:
    arguments = argparse.ArgumentParser(description="Build the pages as a site.")
    arguments.add_argument("--serve", action="store_true", help="serve it when it is built")
    serve = arguments.parse_args().serve
    gather()
    fetch_mermaid()
    # Not --quiet: then it would be strict about nothing.
    words = [sys.executable, "-m", "mkdocs", "build"]
    built = subprocess.run(words, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    if built.returncode:
        print(built.stderr, file=sys.stderr)
        return 1
    foreign = list(from_elsewhere(SITE))
    for line in foreign:
        print(f"site: from another host: {line}", file=sys.stderr)
    if foreign:
        return 1
    pages = len(list(SITE.rglob("*.html")))
    print(f"{pages} pages in {SITE.relative_to(ROOT)}, no dead link, nothing from another host")
    if serve:
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(SITE))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            print(f"http://127.0.0.1:{server.server_port}/")
            server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
