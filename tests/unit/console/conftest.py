"""Fixtures: an open broker with a console, one for each module of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

for _package in ("starlette", "jinja2", "uvicorn", "h11", "httpx"):
    pytest.importorskip(_package, reason="the console's packages are not installed")

from tests.unit.console.site import Site  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console without a log-in, in front of a broker of its own."""
    with Site(tmp_path_factory.mktemp("data")) as running:
        yield running
