"""Why something is as it is: the present state, and the diary's entries about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.console.site import SECURED, Site, text_of


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A console with log-ins."""
    with Site(tmp_path_factory.mktemp("data"), SECURED) as running:
        running.create_topic("orders", 2)
        yield running
        running.serving.lines.clear()


def test_a_partition_and_its_topic_are_explained(site: Site) -> None:
    site.create_topic("explained", 2)
    text = text_of(site.page("/why?of=partition&name=explained-1"))
    assert "broker 0 leads in epoch 0" in text
    assert "all replicas are in sync" in text
    text = text_of(site.page("/why?of=topic&name=explained"))
    assert "2 partitions with 1 replica each" in text
    assert "User:ANONYMOUS created topic explained" in text or "created" in text
    assert "barnabas why topic explained" in text


def test_groups_brokers_and_clients_are_explained(site: Site) -> None:
    site.create_topic("lagging")
    site.produce("lagging", *"abcde")
    site.commit("slow", "lagging", 2)
    assert "it is 3 records behind in 1 partition" in text_of(site.page("/why?of=group&name=slow"))
    broker = text_of(site.page("/why?of=broker&name=0"))
    assert "alive, the controller," in broker
    assert "became the controller" in broker
    client = text_of(site.page("/why?of=client&name=10.0.0.7"))
    assert "nothing is known to have been rejected or throttled of 10.0.0.7" in client


def test_what_there_is_not_is_said(site: Site) -> None:
    assert "group absent does not exist" in text_of(site.page("/why?of=group&name=absent"))
    assert "no broker 9" in text_of(site.page("/why?of=broker&name=9"))
    assert "The diary has no entry about it." in text_of(site.page("/why?of=broker&name=9"))
    assert "Why a group rebalanced or lags" in site.page("/why")


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("of=partition&name=orders", "TOPIC-N"),
        ("of=partition&name=orders-x", "TOPIC-N"),
        ("of=broker&name=first", "named by its id"),
        ("of=<b>&name=x", "'<b>' must be one of group, partition"),
    ],
)
def test_what_cannot_be_asked_is_rejected(site: Site, query: str, text: str) -> None:
    answer = site.get(f"/why?{query}")
    assert answer.status_code == 400
    assert text in text_of(answer.text)
    assert "<b>" not in answer.text


def test_a_user_without_rights_learns_nothing(secured: Site) -> None:
    secured.log_in("alice", "alice-secret")
    for query in ("of=client&name=User:admin", "of=broker&name=0"):
        assert secured.get(f"/why?{query}").status_code == 403
    for query in ("of=topic&name=orders", "of=partition&name=orders-0", "of=group&name=billing"):
        text = text_of(secured.page(f"/why?{query}"))
        assert "created" not in text, query
        assert "leads" not in text, query
        assert "no entry about it that you may see." in text, query
    secured.log_in("admin", "admin-secret")
    assert "leads" in text_of(secured.page("/why?of=partition&name=orders-0"))
