"""What tests against a real ZooKeeper share."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _no_link_outlives_its_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A link that a failed test left open would go on connecting forever, on a thread that draws
    random pauses, which Hypothesis takes for a fault of later tests.
    """
    if find_spec("kazoo") is None:  # then no test opens one
        yield
        return
    from barnabas.coordination.zookeeper.link import Link

    links: list[Any] = []
    start = Link.start

    def recorded(link: Link) -> None:
        links.append(link)
        start(link)

    monkeypatch.setattr(Link, "start", recorded)
    yield
    for link in links:
        if not link._client._stopped.is_set():
            link._stop()
