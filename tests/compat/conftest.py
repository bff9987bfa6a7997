"""Topic names of a test's own, for the files of clients.

Every client is driven through the same acts, each in its own words: administer, produce, read by
assignment. Consumer groups are not used here.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Callable

import pytest
from tests.compat.samples import DEPS

# kafka-python looks for its codecs when it is imported.
sys.path.append(str(DEPS / "codecs"))

NewTopicName = Callable[[], str]


@pytest.fixture
def new_name(request: pytest.FixtureRequest) -> NewTopicName:
    """A maker of topic names that no other test uses (each worker has a broker of its own)."""
    count = itertools.count()
    module = request.module.__name__.rpartition(".")[2].removeprefix("test_")
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    function = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name.removeprefix("test_"))
    return lambda: f"{module}.{function}.{worker}.{next(count)}"[-200:]


@pytest.fixture
def name(new_name: NewTopicName) -> str:
    """One topic name of the test's own."""
    return new_name()
