"""One cluster with consoles and one Chromium for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

for _package in ("starlette", "jinja2", "uvicorn", "h11"):
    pytest.importorskip(_package, reason="the console's packages are not installed")

from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402
from tests.system.console import chromium, contents  # noqa: E402
from tests.system.console.asking import DEADLINE_S, Make  # noqa: E402
from tests.system.console.chromium import Tab  # noqa: E402
from tests.system.console.cluster import ADMIN, ALICE, PASSWORDS, ConsoleCluster  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RECORDS = int(os.environ.get("BARNABAS_CONSOLE_RECORDS", "300000"))
"""Of the long topic; `make chaos` has ten million."""
QUIET = {"log_level": 0}
"""librdkafka says on standard error that a cluster is gone, which is as it should be at the end."""


@pytest.fixture(scope="package")
def site(zookeeper_classpath: str) -> Iterator[ConsoleCluster]:
    """A cluster with thousands of topics, and with hostile names and records."""
    chromium.program()
    racks = ("a", contents.NAMES["script"], contents.NAMES["image"])
    with ConsoleCluster(zookeeper_classpath, racks) as running:
        contents.fill(running.client_options() | QUIET, RECORDS)
        yield running


@pytest.fixture(scope="module")
def browser(site: ConsoleCluster) -> Iterator[Browser]:
    """The browser of one file: its loop is on this thread, where other tests have theirs."""
    with chromium.chromium() as started:
        yield started


@pytest.fixture(scope="module")
def admin_tab(site: ConsoleCluster, browser: Browser) -> Iterator[Tab]:
    """A tab of the super user."""
    tab = Tab(browser, site.url(), accept_downloads=True)
    tab.log_in(ADMIN, PASSWORDS[ADMIN])
    yield tab
    tab.close()


@pytest.fixture
def tab(make: Make, admin_tab: Tab) -> Iterator[Tab]:
    """The super user's tab; at the end of a test its pages have done nothing wrong."""
    admin_tab.take_complaints()
    yield admin_tab
    admin_tab.page.goto("about:blank")  # a live page would ask for what the test has deleted
    complaints = admin_tab.take_complaints()
    assert not complaints, complaints


@pytest.fixture(scope="module")
def alice_tab(site: ConsoleCluster, browser: Browser) -> Iterator[Tab]:
    """A tab of a user without any right."""
    tab = Tab(browser, site.url())
    tab.log_in(ALICE, PASSWORDS[ALICE])
    yield tab
    tab.close()


@pytest.fixture(scope="package")
def cluster_options(site: ConsoleCluster) -> dict[str, Any]:
    """The options of the super user's librdkafka clients."""
    return site.client_options() | QUIET


@pytest.fixture(scope="package")
def admin(cluster_options: dict[str, Any]) -> AdminClient:
    """A client that we did not write, which says what the cluster has."""
    return AdminClient(cluster_options)


@pytest.fixture
def make(admin: AdminClient, cluster_options: dict[str, Any]) -> Iterator[Make]:
    """Make topics for one test, each with some records; what the test has made goes with it."""
    before = set(admin.list_topics(timeout=60).topics)

    def make(name: str, partitions: int = 1, records: int = 0, **given: Any) -> str:
        replicas = given.pop("replicas", 1)
        new = NewTopic(name, partitions, replicas, **given)
        admin.create_topics([new])[name].result(DEADLINE_S)
        rows = [(b"key-%d" % n, b"value-%d" % n, [("n", b"%d" % n)]) for n in range(records)]
        contents.produce(cluster_options, name, rows)
        return name

    yield make
    made = set(admin.list_topics(timeout=60).topics) - before
    there = [name for name in made if not name.startswith("_")]
    for future in admin.delete_topics(there).values() if there else ():
        future.result(DEADLINE_S)
