"""The pages as a site: where links lead, and what a browser would fetch from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.build_site import from_elsewhere, relinked

PLACED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "docs/tutorial.md": "tutorial.md",
    "docs/how-to/sql.md": "how-to/sql.md",
    "docs/how-to/spark.md": "how-to/spark.md",
}


@pytest.mark.parametrize(
    ("own", "link", "becomes"),
    [
        ("README.md", "docs/how-to/sql.md", "[x](how-to/sql.md)"),
        ("README.md", "docs/how-to/sql.md#types", "[x](how-to/sql.md#types)"),
        ("docs/how-to/sql.md", "spark.md", "[x](spark.md)"),
        ("docs/how-to/sql.md", "../tutorial.md", "[x](../tutorial.md)"),
        ("docs/how-to/sql.md", "../../CHANGELOG.md", "[x](../changelog.md)"),
        ("docs/how-to/sql.md", "#here", "[x](#here)"),
        ("docs/how-to/sql.md", "https://kafka.apache.org/", "[x](https://kafka.apache.org/)"),
        ("docs/how-to/sql.md", "../examples/tuning.py", "x"),
        ("docs/how-to/sql.md", "../dashboards", "x"),
    ],
)
def test_links_lead_to_where_pages_are(own: str, link: str, becomes: str) -> None:
    assert relinked(f"a [x]({link}) b", own, PLACED) == f"a {becomes} b"


def test_blocks_stay_as_they_are() -> None:
    text = "```sh\necho '[x](nowhere.md)'\n```\n"
    assert relinked(text, "README.md", PLACED) == text


def test_a_dead_link_is_named() -> None:
    with pytest.raises(SystemExit, match=r"README.md: docs/none.md does not exist"):
        relinked("[x](docs/none.md)", "README.md", PLACED)


def test_what_comes_from_other_hosts_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        '<script src="https://one/x.js"></script><script src="own.js"></script>'
        '<link rel="stylesheet" href="//two/x.css"><link rel="canonical" href="https://kept/">'
        '<img src="own.png"><a href="https://kept/">text</a>'
    )
    (tmp_path / "style.css").write_text("@import url(https://three/f.css); a {background: url(x)}")
    assert list(from_elsewhere(tmp_path)) == [
        "page.html: https://one/x.js",
        "page.html: //two/x.css",
        "style.css: https://three/f.css",
    ]
