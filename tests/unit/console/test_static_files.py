"""Files that pages need: small, named by their contents, and what the manifest says."""

from __future__ import annotations

import re

from tests.unit.console.site import Site
from tools import vendor_console

from barnabas.console.static_files import FOLDER, StaticFiles

TOTAL_MAX = 300_000


def test_vendored_files_are_those_of_the_manifest() -> None:
    assert vendor_console.complaints() == []
    own = {"console.css", "console.js", "icon.svg", "vendor.json"}
    assert {each.name for each in FOLDER.iterdir()} == set(vendor_console.FILES) | own


def test_all_of_them_are_small() -> None:
    assert 50_000 < StaticFiles().total_bytes < TOTAL_MAX


def test_what_a_page_refers_to_is_served_forever(site: Site) -> None:
    addresses = re.findall(r'(?:src|href)="(/static/[^"]+)"', site.page("/"))
    assert len(addresses) >= 6
    for address in addresses:
        answer = site.get(address, accept_encoding="identity")
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert answer.headers["x-content-type-options"] == "nosniff"
        packed = site.get(address, **{"accept-encoding": "gzip"})
        assert packed.headers["content-encoding"] == "gzip"
    assert site.get("/static/console.css").status_code == 404, "without its hash there is none"
    assert site.get("/static/..%2fapp.py").status_code == 404


def test_a_name_changes_with_the_contents(tmp_path: object) -> None:
    from pathlib import Path

    folder = Path(str(tmp_path))
    (folder / "a.js").write_text("1")
    (folder / "a.txt").write_text("not served")
    before = StaticFiles(folder).address("a.js")
    (folder / "a.js").write_text("2")
    after = StaticFiles(folder).address("a.js")
    assert before != after
    assert re.fullmatch(r"/static/a\.[0-9a-f]{12}\.js", after)


def test_own_files_load_nothing_from_elsewhere() -> None:
    for name in ("console.css", "console.js"):
        text = (FOLDER / name).read_text("utf-8")
        assert "http:" not in text
        assert "https:" not in text
        assert "@import" not in text
        assert "innerHTML" not in text
        assert "eval(" not in text
