"""Topics for the tests of pages about records."""

from __future__ import annotations

import re

import pytest
from tests.unit.console.site import Site


@pytest.fixture
def topic(site: Site, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^A-Za-z0-9]", "-", request.node.name)[:80]
    site.create_topic(name)
    return name
